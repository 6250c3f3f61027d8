"""moves: blocks that only move data are read through, or written through, instead of being carried out."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from tvm_neuron.codegen.passes.canonical import canonical, united
from tvm_neuron.codegen.passes.product_layout import result_partitions
from tvm_neuron.program import Origin
from tvm_neuron.schedule.expr import Apply, Axis, Expr, Index, Load, Num, replace_axes, rewrite
from tvm_neuron.schedule.graph import Block, Graph, linear_indices
from tvm_neuron.schedule.linear import Linear, counts, linear
from tvm_neuron.schedule.roles import gathered, is_constant_contraction, is_diagonal, is_forward, product_factors
from tvm_neuron.schedule.tensor import Tensor, is_rounded


def moved_load(block: Block) -> Load | None:
    """The load of a block that only moves data, or None."""
    is_move = isinstance(block.expr, Load) and not block.combine and block.expr.tensor.value is None
    return block.expr if is_move and isinstance(block.expr, Load) else None


def write_box(into: Tensor, box: Sequence[tuple[int, int]], origin: Origin, source: Tensor | None) -> Block:
    """The source, or zeros, at a box: [low, high) along each dimension."""
    axes = tuple(Axis(f"p{d}", high - low) for d, (low, high) in enumerate(box))
    index = tuple(Linear(low, {axis: 1}).index() for axis, (low, _) in zip(axes, box, strict=True))
    return canonical(Block(origin, axes, into, index, Load(source, tuple(map(Index, axes))) if source else Num(0.0)))


def read_through(graph: Graph) -> None:
    """Lets readers of a moved tensor read the tensor it was moved from, wherever their indices stay simple."""
    for tensor in list(graph.tensors()):
        writers = graph.writers(tensor)
        load = moved_load(writers[0]) if len(writers) == 1 else None
        if load is None or tensor.kind == "output" or not can_invert(writers[0]):
            continue
        for reader in graph.readers(tensor):
            changed = _read_through(reader, writers[0], load)
            if changed is not None:
                graph.replace(reader, changed)
        if not graph.readers(tensor):
            graph.replace(writers[0])


def join_moves(graph: Graph, partition_of: dict[Tensor, int], move_ps: Callable[[Block], int]) -> None:
    """Lets moves, those that layouts made among them, read what others moved from where that lay, if that is sooner.

    Tokens by experts, one behind the other, are spread over the partitions from [tokens, experts] without lying so.
    """
    for block in graph.blocks:
        load = moved_load(block)
        writers = graph.writers(load.tensor) if load and load.tensor.kind == "temp" else []
        source = moved_load(writers[0]) if len(writers) == 1 else None
        if load is None or source is None or not can_invert(writers[0]):
            continue
        joined = _read_through(block, writers[0], source)
        if joined is not None and move_ps(joined) < move_ps(block) + move_ps(writers[0]):
            graph.replace(block, joined)
            if not graph.readers(load.tensor):
                graph.replace(writers[0])
                del partition_of[load.tensor]


def _read_through(reader: Block, move: Block, source: Load) -> Block | None:
    """The reader reading what was moved from its source, or None where that would not stay simple."""
    if gathered(reader):
        return None  # an index of its data is only known at run time
    if is_rounded([source.tensor], move.output, reader.output):
        return None

    def leaf(part: Num | Index | Load) -> Expr:
        if not isinstance(part, Load) or part.tensor is not move.output:
            return part
        by = inverse(move, part.indices)
        return Load(source.tensor, tuple(replace_axes(index, by) for index in source.indices))

    candidate = canonical(reader.with_expr(rewrite(reader.expr, leaf)))
    is_linear = all(is_forward(load) for load in candidate.loads())
    is_simple = len(candidate.axes) == len(reader.axes) and all(map(_is_simple, candidate.loads()))
    is_multiplied = is_constant_contraction(candidate) or product_factors(candidate) is not None
    if is_multiplied and any(map(is_diagonal, candidate.loads())):
        return None
    if is_multiplied and source.tensor.dtype != move.output.dtype:
        return None  # the precision of a product is that of the model's operands
    if is_linear and moved_load(candidate) is not None:
        return united(candidate)
    return candidate if is_linear and (is_simple or is_multiplied) else None


def _is_simple(load: Load) -> bool:
    """Each dimension follows one spatial axis at most, and no axis occurs in two dimensions."""
    used: list[Axis] = []
    for part in linear_indices(load.indices) or ():
        spatial = [axis for axis in part.terms if not axis.is_reduction]
        if len(spatial) > 1:
            return False
        used += spatial
    return len(used) == len(set(used))


def can_invert(block: Block) -> bool:
    """Whether the block's axes can be told from where it writes: each dimension counts some axes in mixed radix."""
    return is_one_to_one(block.index)


def is_one_to_one(indices: tuple[Expr, ...]) -> bool:
    """Whether each dimension counts axes of its own in mixed radix: the indices tell the value of every axis."""
    maps = linear_indices(indices)
    if maps is None:
        return False
    seen = [axis for part in maps for axis in part.terms]
    return len(seen) == len(set(seen)) and all(counts(part.terms) for part in maps)


def inverse(block: Block, indices: tuple[Expr, ...]) -> dict[Axis, Expr]:
    """The value of each axis of `block` where it writes the element `indices` of its output."""
    by: dict[Axis, Expr] = {}
    for part, index in zip(linear_indices(block.index) or (), indices, strict=True):
        at = Apply("subtract", (index, Num(part.const))) if part.const else index
        for axis, step in part.terms.items():
            value = Apply("floordiv", (at, Num(step))) if step > 1 else at
            is_top = step == max(part.terms.values())
            by[axis] = value if is_top else Apply("floormod", (value, Num(axis.extent)))
    return by


def plain_axes(index: tuple[Expr, ...]) -> tuple[Axis | None, ...] | None:
    """The axis of each dimension (None for a dimension of extent 1), if the index is just axes."""
    found: list[Axis | None] = []
    for part in linear_indices(index) or (Linear(1),):
        if part.const or any(step != 1 for step in part.terms.values()) or len(part.terms) > 1:
            return None
        found.append(next(iter(part.terms), None))
    return tuple(found)


def write_through(
    graph: Graph, partition_of: dict[Tensor, int], start_step: int, move_ps: Callable[[Block], int]
) -> None:
    """Lets the writers of a tensor write into the larger one that it is only moved into (padded, concatenated).

    Not where that would shift partitions by other than a multiple of `start_step`, which no engine can write, nor where
    the moves that write the tensor would take longer than they and the one saved do: padded rows are short for a DMA.
    """
    for source in list(graph.tensors()):
        for block in graph.readers(source):
            load = moved_load(block)
            if load is None or source.kind != "temp" or not graph.writers(source):
                continue
            if _would_read_itself(graph, source, block) or _must_stay(graph, source, block):
                continue
            axes = covered_axes(load, block)
            if axes is None or not _keeps_partition(block, load, partition_of, start_step):
                continue
            others = dict.fromkeys([*graph.writers(source), *graph.readers(source)])
            changed = {other: redirected(other, source, axes, block) for other in others if other is not block}
            written = block.output.is_stored  # a part of it by itself, whatever computes it
            priced = [writer for writer in graph.writers(source) if written or moved_load(writer)]
            if sum(move_ps(changed[writer]) - move_ps(writer) for writer in priced) <= move_ps(block):
                graph.replace(block)
                for old, new in changed.items():
                    graph.replace(old, new)
                break


def write_products_through(graph: Graph) -> None:
    """Lets a product of run-time tensors write where its result is only moved to: heads side by side, say.

    A reader then sums over all heads at once, rather than over the channels of one after the other. Not where it is
    moved to places that the PE array writes on fewer partitions at a time: rows of windows one after the other, say.
    """
    for source in list(graph.tensors()):
        writers, readers = graph.writers(source), graph.readers(source)
        if len(writers) != 1 or len(readers) != 1 or source.kind != "temp" or not product_factors(writers[0]):
            continue
        load = moved_load(readers[0])
        axes = covered_axes(load, readers[0]) if load else None
        if axes is None or len(graph.writers(readers[0].output)) != 1:
            continue
        changed = redirected(writers[0], source, axes, readers[0])
        if result_partitions(changed) >= max(1, result_partitions(writers[0])):
            graph.replace(readers[0])
            graph.replace(writers[0], changed)


def write_moves_through(graph: Graph) -> None:
    """Lets moves that together make a tensor (concatenated, say) write where it is only moved to."""
    for source in list(graph.tensors()):
        writers, readers = graph.writers(source), graph.readers(source)
        if len(writers) < 2 or len(readers) != 1 or source.kind != "temp" or not all(map(moved_load, writers)):
            continue
        load = moved_load(readers[0])
        axes = covered_axes(load, readers[0]) if load else None
        if axes is None or _would_read_itself(graph, source, readers[0]):
            continue
        if not all(map(_writes_rows, (*writers, *readers))):
            continue
        graph.replace(readers[0])
        for writer in writers:
            graph.replace(writer, redirected(writer, source, axes, readers[0]))


def _writes_rows(block: Block) -> bool:
    """Whether it writes whole rows of the innermost dimension, so that nothing is put together of short pieces."""
    (low, high), extent = linear(block.index[-1]).span, block.output.shape[-1]
    return low == 0 and high == extent - 1


def _would_read_itself(graph: Graph, source: Tensor, move: Block) -> bool:
    """Whether a block would read and write the larger tensor, which need not be in SBUF as a whole."""
    readers = [block for block in graph.readers(source) if block is not move]
    is_read = any(load.tensor is move.output for block in graph.writers(source) for load in block.loads())
    return is_read or any(block.output is move.output for block in readers)


def _must_stay(graph: Graph, source: Tensor, move: Block) -> bool:
    """Whether a gather reads the tensor, or others than the move would then read a copy in DRAM or of another dtype."""
    readers = graph.readers(source)
    is_copy_for_one = move.output.kind == "scratch" or move.output.dtype != source.dtype
    return any(map(gathered, readers)) or (is_copy_for_one and len(readers) > 1)


def covered_axes(load: Load, block: Block) -> tuple[Axis | None, ...] | None:
    """The axes of a move along each dimension of its source (None: of extent 1), if it takes all of it; else None."""
    axes = plain_axes(load.indices)
    if axes is None:
        return None
    named = [axis for axis in axes if axis is not None]
    extents = [1 if axis is None else axis.extent for axis in axes]
    every = {axis for axis in block.axes if axis.extent > 1} == set(named) and len(named) == len(set(named))
    return axes if every and tuple(extents) == load.tensor.shape else None


def _keeps_partition(block: Block, load: Load, partition_of: dict[Tensor, int], start_step: int) -> bool:
    source, target = linear_indices(load.indices), linear_indices(block.index)
    if source is None or target is None:
        return False
    here, there = partition_of[load.tensor], partition_of[block.output]
    same_axis = source[here].terms == target[there].terms
    return same_axis and target[there].const % start_step == 0


def redirected(block: Block, old: Tensor, axes: tuple[Axis | None, ...], move: Block) -> Block:
    """The block writing and reading what all of `old`, whose dimensions are these axes, is moved to."""

    def place(indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        by = {axis: index for axis, index in zip(axes, indices, strict=True) if axis is not None}
        return tuple(replace_axes(part, by) for part in move.index)

    def leaf(part: Num | Index | Load) -> Expr:
        return Load(move.output, place(part.indices)) if isinstance(part, Load) and part.tensor is old else part

    if block.output is old:
        block = replace(block, output=move.output, index=place(block.index))
    if any(load.tensor is old for load in block.loads()):
        block = block.with_expr(rewrite(block.expr, leaf))
    return canonical(block)
