"""layout: which dimension of each tensor lies on the partitions, chosen over the whole subgraph, and the moves it costs."""

from dataclasses import replace

import numpy as np

from tvm_neuron.schedule.expr import Apply, Axis, Expr, Index, Load, Num, rewrite
from tvm_neuron.schedule.graph import Block, Graph, Tensor, linear_indices
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.roles import data_factor, factors, is_constant_contraction


def assign_partitions(graph: Graph) -> dict[Tensor, int]:
    """The partition dimension of every tensor; inserts moves into `graph` where a reader needs another one.

    Contractions decide (their summed channels and their output channels lie on partitions); everything else keeps
    what its largest operand has. A sum over partitions becomes a contraction with ones; any other reduction over
    partitions reads a copy laid out otherwise.
    """
    partition_of = {tensor: _default(tensor) for tensor in graph.inputs}
    blocks = graph.blocks
    laid_out: list[Block] = []
    copies: dict[tuple[Tensor, int], Tensor] = {}
    for at, block in enumerate(blocks):
        block = _lay_out(block, partition_of, copies, laid_out)
        if block.output not in partition_of:
            siblings = [b for b in blocks[at:] if b.output is block.output and any(_varying(b))]
            chosen = _choose(siblings[0] if siblings and not any(_varying(block)) else block, partition_of)
            partition_of[block.output] = chosen
        block = _match_operands(block, partition_of, copies, laid_out)
        laid_out.append(block)
    graph.blocks = laid_out
    return partition_of


def _default(tensor: Tensor) -> int:
    return 1 if len(tensor.shape) > 1 else 0


def _varying(block: Block) -> list[Load]:
    """Loads known at run time only, the largest tensor first."""
    found = [load for load in block.loads() if load.tensor.value is None]
    return sorted(found, key=lambda load: -load.tensor.elems)


def _choose(block: Block, partition_of: dict[Tensor, int]) -> int:
    out_maps = linear_indices(block.index) or ()
    if is_constant_contraction(block):
        constant_axes = {
            axis
            for part in factors(block.expr)
            if isinstance(part, Load) and part.tensor.value is not None
            for m in linear_indices(part.indices) or ()
            for axis in m.terms
        }
        rows = [d for d, m in enumerate(out_maps) if set(m.terms) & constant_axes]
        if rows:
            return max(rows, key=lambda d: block.output.shape[d])
    for load in _varying(block):
        maps = linear_indices(load.indices)
        if maps is None or load.tensor not in partition_of:
            continue
        axes = set(maps[partition_of[load.tensor]].terms)
        for d, m in enumerate(out_maps):
            if axes & set(m.terms) or (not axes and not m.terms):
                return d
    return min(_default(block.output), max(len(block.output.shape) - 1, 0))


def _lay_out(block: Block, partition_of: dict[Tensor, int], copies: dict[tuple[Tensor, int], Tensor], laid_out: list[Block]) -> Block:
    """The block with its data laid out so that what it sums or reduces lies where an engine can reach it."""
    if is_constant_contraction(block):
        data = data_factor(block)
        assert data is not None
        depth = _depth_dims(block, data)
        if depth and partition_of[data.tensor] not in depth:
            best = max(depth, key=lambda d: data.tensor.shape[d])
            return _read_copy(block, data.tensor, best, partition_of, copies, laid_out)
        return block
    if not block.combine:
        return _use_copy(block, partition_of, copies)
    if not isinstance(block.expr, Load) or block.expr.tensor.value is not None:
        return block
    load = block.expr
    maps = linear_indices(load.indices)
    if maps is None or not any(axis.is_reduction for axis in maps[partition_of[load.tensor]].terms):
        return block
    if block.combine == "add":
        return _with_ones(block, load, maps[partition_of[load.tensor]])
    kept = [d for d, m in enumerate(maps) if not any(axis.is_reduction for axis in m.terms)]
    if not kept:
        return block
    best = max(kept, key=lambda d: load.tensor.shape[d])
    return _read_copy(block, load.tensor, best, partition_of, copies, laid_out)


def _depth_dims(block: Block, data: Load) -> list[int]:
    """Dimensions of the data that only summed axes (and the output's channels) move along."""
    maps, out = linear_indices(data.indices), linear_indices(block.index)
    constant = [part for part in factors(block.expr) if isinstance(part, Load) and part is not data]
    known = {axis for part in constant for m in linear_indices(part.indices) or () for axis in m.terms}
    free = {axis for m in out or () for axis in m.terms if axis not in known}
    return [d for d, m in enumerate(maps or ()) if not set(m.terms) & free]


def _with_ones(block: Block, load: Load, part: Linear) -> Block:
    axis = next(axis for axis in part.terms if axis.is_reduction)
    ones = Tensor("ones", (axis.extent,), "float32", value=np.ones(axis.extent, np.float32))
    return block.with_expr(Apply("multiply", (load, Load(ones, (Index(axis),)))))


def _match_operands(
    block: Block, partition_of: dict[Tensor, int], copies: dict[tuple[Tensor, int], Tensor], laid_out: list[Block]
) -> Block:
    """An elementwise block with every operand laid out as its output is; a plain move needs nothing of the kind."""
    if block.combine or isinstance(block.expr, Load):
        return block
    out_maps = linear_indices(block.index) or ()
    here = set(out_maps[partition_of[block.output]].terms) if out_maps else set()
    for load in _varying(block):
        maps = linear_indices(load.indices)
        if not maps or set(maps[partition_of[load.tensor]].terms) == here:
            continue
        wanted = [d for d, m in enumerate(maps) if set(m.terms) == here]
        if wanted and here:
            block = _read_copy(block, load.tensor, wanted[0], partition_of, copies, laid_out)
        elif not here:
            flat = [d for d, m in enumerate(maps) if not m.terms]
            if flat:
                block = _read_copy(block, load.tensor, flat[0], partition_of, copies, laid_out)
    return block


def _read_copy(
    block: Block, tensor: Tensor, dim: int, partition_of: dict[Tensor, int], copies: dict[tuple[Tensor, int], Tensor], laid_out: list[Block]
) -> Block:
    if (tensor, dim) not in copies:
        copy = Tensor(f"{tensor.name}.by{dim}", tensor.shape, tensor.dtype)
        axes = tuple(Axis(f"c{d}", extent) for d, extent in enumerate(tensor.shape))
        index: tuple[Expr, ...] = tuple(Index(axis) for axis in axes)
        copies[tensor, dim] = copy
        partition_of[copy] = dim
        laid_out.append(Block(block.origin, axes, copy, index, Load(tensor, index)))
    return _replace_load(block, tensor, copies[tensor, dim])


def _use_copy(block: Block, partition_of: dict[Tensor, int], copies: dict[tuple[Tensor, int], Tensor]) -> Block:
    """An elementwise block reading the copy of its largest operand that suits its other operands, if there is one."""
    main, *others = _varying(block) or [None]
    if main is None or not others or isinstance(block.expr, Load):
        return block
    maps = linear_indices(main.indices)
    wanted = [_partition_axes(load, partition_of) for load in others]
    for (tensor, dim), copy in copies.items():
        if tensor is main.tensor and maps is not None and all(set(maps[dim].terms) == axes for axes in wanted):
            return _replace_load(block, tensor, copy)
    return block


def _partition_axes(load: Load, partition_of: dict[Tensor, int]) -> set[Axis]:
    maps = linear_indices(load.indices)
    return set(maps[partition_of[load.tensor]].terms) if maps else set()


def _replace_load(block: Block, tensor: Tensor, copy: Tensor) -> Block:
    def leaf(part: Num | Index | Load) -> Expr:
        return Load(copy, part.indices) if isinstance(part, Load) and part.tensor is tensor else part

    return replace(block, expr=rewrite(block.expr, leaf))
