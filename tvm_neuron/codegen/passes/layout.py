"""layout: which dimension of each tensor lies on the partitions, over the whole subgraph, and the moves that costs."""

from collections.abc import Mapping, Sequence

import numpy as np

from tvm_neuron.codegen.passes.copies import Copies, replace_load
from tvm_neuron.codegen.passes.in_order import stored_dim, unmoved_dim
from tvm_neuron.codegen.passes.inside import reduced_inside
from tvm_neuron.codegen.passes.moves import moved_load
from tvm_neuron.codegen.passes.product_layout import (
    choose_result_dim,
    counted_together,
    depth_dims,
    depth_lies,
    input_dim,
    result_dims,
    summed_axis,
    summed_together,
)
from tvm_neuron.codegen.passes.rows_in_order import rows_in_order
from tvm_neuron.schedule.expr import Apply, Axis, Index, Load, axes_of, loads
from tvm_neuron.schedule.graph import Block, Graph, linear_indices
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.operations import PARTITION_START_STEP
from tvm_neuron.schedule.roles import (
    Gathered,
    Scanned,
    data_factor,
    factors,
    gathered,
    is_constant_contraction,
    product_factors,
    scanned,
)
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import PARTITIONS


def assign_partitions(graph: Graph, given: Mapping[Tensor, int]) -> dict[Tensor, int]:
    """The partition dimension of every tensor; inserts moves into `graph` where a reader needs another one.

    That of some tensors is `given`. Contractions decide (their summed channels and their output channels lie on
    partitions); everything else keeps what its largest operand has. A reduction over partitions reads a copy laid out
    otherwise; where nothing else is left to lie there, that is on one partition, or a long sum becomes a contraction
    with ones.
    """
    layout = _laid_out(graph, given)
    graph.blocks = layout.blocks
    return layout.partition_of


def own_dims(graph: Graph, given: Mapping[Tensor, int]) -> dict[Tensor, int]:
    """That of the graph's own tensors, which stays as it is; of outputs the one with which they are computed."""
    layout = _laid_out(graph, given)
    return {t: layout.partition_of[layout.copies.temporaries.get(t, t)] for t in graph.tensors()}


def _laid_out(graph: Graph, given: Mapping[Tensor, int]) -> "_Layout":
    layout = _Layout(graph, {tensor: _input_dim(graph, tensor) for tensor in graph.inputs} | dict(given))
    for block in graph.blocks:
        layout.add(block)
    return layout


def lay_out_block(
    graph: Graph, block: Block, partition_of: Mapping[Tensor, int]
) -> tuple[list[Block], dict[Tensor, int], dict[Tensor, tuple[Tensor, int]]]:
    """A block of `graph` and the moves that it needs, where its tensors lie so, and how all tensors then lie.

    At last those copies that other blocks could read, too: of which tensor, with which dimension on the partitions.
    """
    layout = _Layout(graph, partition_of)
    layout.add(block)
    return layout.blocks, layout.partition_of, {copy: found for found, copy in layout.copies.whole.items()}


_FEW = 4096
"""So many are summed exactly, side by side on one partition; more by the PE array, whose operands are rounded."""


class _Layout:
    def __init__(self, graph: Graph, given: Mapping[Tensor, int]) -> None:
        self.graph = graph
        self.partition_of = dict(given)
        self.blocks: list[Block] = []
        self.copies = Copies(self.partition_of, self.blocks)

    def add(self, block: Block) -> None:
        """Appends the block, laid out, and before it the copies that it needs."""
        changed = self._lay_out(self.copies.read_temporaries(block))
        if changed.output not in self.partition_of:
            self.partition_of[changed.output] = self._output_dim(changed, block)
        if found := rows_in_order(changed, self.partition_of[changed.output]):
            moves, changed = found
            self.partition_of |= {move.output: dim for move, dim in moves.items()}
            self.blocks += moves
        self.blocks.append(self._match_operands(changed))
        if block is self.graph.writers(block.output)[-1] and not gathered(block):
            self.copies.store_in_rows(block)

    def _output_dim(self, changed: Block, block: Block) -> int:
        """That of what a block writes; what positions choose from in device memory lies there in rows."""
        readers = map(gathered, self.graph.readers(changed.output) if changed.output.kind == "scratch" else ())
        chosen_from = [found.dims[0] for found in readers if found and found.data.tensor is changed.output]
        if chosen_from:
            return chosen_from[0]
        siblings = [changed, *(other for other in self.graph.writers(block.output) if other is not block)]
        leader = next((other for other in siblings if _varying(other)), changed)  # a fill follows what it pads
        return _writable_dim(self._choose(leader), leader, siblings)

    def _lay_out(self, block: Block) -> Block:
        """The block with its data laid out so that what it sums or reduces lies where an engine can reach it."""
        if is_constant_contraction(block):
            return self._lay_out_contraction(block)
        if product_factors(block):
            return self._lay_out_product(block)
        if found := scanned(block):
            return self._lay_out_scan(block, found)
        if not block.combine:
            moved = moved_load(block)
            is_in_dram = moved is not None and moved.tensor.kind == "scratch"  # from where DMA brings anything
            return block if is_in_dram else self._read_in_order(self._use_copy(block))
        load = block.expr
        if not isinstance(load, Load) or load.tensor.value is not None:
            return block
        maps = linear_indices(load.indices)
        if maps is None or not any(axis.is_reduction for axis in maps[self.partition_of[load.tensor]].terms):
            return block
        if staged := reduced_inside(block, load, maps, self.partition_of[load.tensor]):
            inside, rest = staged
            self.partition_of[inside.output] = 0
            self.blocks.append(inside)
            return self._lay_out(rest)
        kept = [d for d, m in enumerate(maps) if m.terms and not any(axis.is_reduction for axis in m.terms)]
        if block.combine == "add" and not kept and load.tensor.elems > _FEW:
            groups = [d for d, m in enumerate(maps) if len(m.terms) > 1 and reduced_inside(block, load, maps, d)]
            if groups:  # the array's ones don't tell them apart
                return self._lay_out(self.copies.along(block, load, groups[0]))
            return _with_ones(block, load, maps[self.partition_of[load.tensor]])
        single = [d for d, m in enumerate(maps) if not m.terms and load.tensor.elems <= _FEW]
        if kept or single:  # readers beside the reduction can use such a copy, too
            return self.copies.along(block, load, max(kept or single, key=lambda d: load.tensor.shape[d]))
        own = [axis for m in maps for axis in m.terms if not axis.is_reduction]
        return self.copies.packed(block, load, max(own, key=lambda axis: axis.extent, default=Axis("p", 1)))

    def _lay_out_scan(self, block: Block, found: Scanned) -> Block:
        """The block with what it scans along laid out within partitions."""
        for load in found.loads:
            maps = linear_indices(load.indices)
            if maps is None or found.counted not in maps[self.partition_of[load.tensor]].terms:
                continue
            kept = [d for d, m in enumerate(maps) if m.terms and found.counted not in m.terms]
            if kept:
                block = self.copies.along(block, load, max(kept, key=lambda d: load.tensor.shape[d]))
            else:
                block = self.copies.packed(block, load, Axis("p", 1))
        return block

    def _lay_out_contraction(self, block: Block) -> Block:
        data = data_factor(block)
        assert data is not None
        summed, here = _summed(block, data), self.partition_of[data.tensor]
        longest = _longest(summed, data)
        if longest is None or (here in summed and (summed[here] > 1 or summed[longest] == 1)):
            return block
        return self.copies.along(block, data, longest)

    def _lay_out_product(self, block: Block) -> Block:
        """The block with both operands laid out along the axis that is summed, on the same partitions."""
        is_single = all(block.output.shape[dim] == 1 for dim in result_dims(block))  # as heads are where there is one
        if is_single and (found := counted_together(block)):
            block = self.copies.merged(block, *found)
        if summed := summed_together(block):
            block = self.copies.merged(block, *summed)
        depth = summed_axis(block)
        for number in range(2):
            load = (product_factors(block) or ())[number]
            dims = depth_dims(load, depth)
            if dims and self.partition_of[load.tensor] not in dims:
                block = self.copies.along(block, load, dims[0])
        pair = product_factors(block) or ()
        parts = [self._depth(load, depth) for load in pair]
        for load, part in zip(pair, parts, strict=True):
            if part is None or (any(part) and parts[0] != parts[1]):
                block = self.copies.packed(block, load, depth)
        return block

    def _depth(self, load: Load, depth: Axis) -> tuple[int, dict[Axis, int]] | None:
        """How the depth lies on the operand's partitions, None if it does not."""
        dim = self.partition_of[load.tensor]
        return depth_lies(load, dim, depth) if dim in depth_dims(load, depth) else None

    def _choose(self, block: Block) -> int:
        """The partition dimension of what the block writes."""
        out_maps = linear_indices(block.index) or ()
        if block.output.is_spread:
            return 0
        if chosen := gathered(block):
            summed = self._summed_dim(block, chosen, out_maps)
            return self._along_positions(chosen, out_maps) if summed is None else summed
        if any(_is_at(block.output, reader) for reader in self.graph.readers(block.output)):
            return max(range(len(block.output.shape)), key=lambda d: block.output.shape[d])
        if product_factors(block):
            return choose_result_dim(block, self.graph)
        if is_constant_contraction(block):
            rows = [d for d, m in enumerate(out_maps) if set(m.terms) & _constant_axes(block)]
            rows = rows or [d for d, m in enumerate(out_maps) if not m.terms]  # one channel, beside the data's axes
            if rows:
                return max(rows, key=lambda d: block.output.shape[d])
        if _is_split_input(block):
            return _outer_dim(block.output)
        if found := scanned(block):
            rows = [d for d, m in enumerate(out_maps) if found.along not in m.terms]
            lie = [self._partition_axes(load) for load in found.loads]
            same = [d for d in rows if out_maps[d].terms and set(out_maps[d].terms) in lie]
            return next(iter(same), max(rows, key=lambda d: block.output.shape[d]))
        if moved_load(block) and (summed := self._contracted_dim(block.output)) is not None:
            return summed
        for load in _varying(block):
            axes = self._partition_axes(load)
            for d, m in enumerate(out_maps):
                if axes is not None and (axes & set(m.terms) or (not axes and not m.terms)):
                    return stored_dim(block, d, out_maps, axes)
        return min(1, max(len(block.output.shape) - 1, 0))

    def _contracted_dim(self, tensor: Tensor) -> int | None:
        """The dimension that all readers sum with weights: what is moved goes there at once, not by a second move.

        Images come with their channels last and are padded with them first, say. What is put together of parts for
        products goes to the one that these sum.
        """
        readers = self.graph.readers(tensor)
        if len(self.graph.writers(tensor)) > 1 and (multiplied := _multiplied_dim(tensor, readers)) is not None:
            return multiplied
        if not readers or not all(map(is_constant_contraction, readers)):
            return None
        found = {_contracted_dim(reader) for reader in readers}
        return found.pop() if len(found) == 1 else None

    def _along_positions(self, chosen: Gathered, out_maps: tuple[Linear, ...]) -> int:
        """The dimension of a gather's result with the axis that lies on the partitions of its positions."""
        axes = self._partition_axes(chosen.positions) or set()
        return next((d for d, m in enumerate(out_maps) if axes & set(m.terms) or (not axes and not m.terms)), 0)

    def _summed_dim(self, block: Block, chosen: Gathered, out_maps: tuple[Linear, ...]) -> int | None:
        """The dimension of matrices chosen among constants that a product sums: in DRAM their rows lie along that."""
        data_maps, chosen_by = linear_indices(chosen.data.indices) or (), set(axes_of(chosen.positions))
        rows = [axis for m in data_maps for axis in m.terms if axis.extent > 1]
        if chosen.data.tensor.value is None or len(rows) < 2 or chosen_by & set(rows):
            return None
        alone = [d for d, m in enumerate(out_maps) if len(m.terms) == 1 and m in data_maps]
        for reader in self.graph.readers(block.output):
            for load in product_factors(reader) or ():
                dims = depth_dims(load, summed_axis(reader)) if load.tensor is block.output else []
                if found := [d for d in dims if d in alone]:
                    return found[0]
        return None

    def _match_operands(self, block: Block) -> Block:
        """An elementwise block with every operand laid out as its output is; a plain move needs nothing of it."""
        out_maps = linear_indices(block.index)
        chosen = gathered(block)
        if chosen and out_maps:
            here = set(out_maps[self.partition_of[block.output]].terms)
            is_summed = len(here) == 1 and not here & set(axes_of(chosen.positions))
            return self.copies.spread(block, chosen.positions, next(iter(here))) if is_summed else block
        is_move = isinstance(block.expr, Load) and not block.combine
        if is_move or is_constant_contraction(block) or product_factors(block) or not out_maps:
            return block
        here = set(out_maps[self.partition_of[block.output]].terms)
        for load in dict.fromkeys(_varying(block)):  # an expression may have one in a thousand places
            maps = linear_indices(load.indices)
            if maps and self._partition_axes(load) != here:
                wanted = [d for d, m in enumerate(maps) if set(m.terms) == here]
                if wanted:
                    block = self.copies.along(block, load, wanted[0])
                elif len(here) == 1 and not any(here & set(m.terms) for m in maps):
                    block = self.copies.spread(block, load, next(iter(here)))
                elif len(here) <= 1:  # none of its dimensions moves as the partitions do
                    block = self.copies.packed(block, load, next(iter(here), Axis("p", 1)))
            elif maps and not _is_reachable(maps[self.partition_of[load.tensor]]):
                block = self.copies.shifted(block, load)
        return block

    def _use_copy(self, block: Block) -> Block:
        """An elementwise block reading that copy of its largest operand, if any, that suits its other operands."""
        varying = _varying(block)
        if len(varying) < 2 or isinstance(block.expr, Load) or gathered(block):
            return block
        main = varying[0]
        others = [load for load in varying if load != main]
        maps = linear_indices(main.indices)
        wanted = [self._partition_axes(load) for load in others]
        for (tensor, dim), copy in self.copies.whole.items():
            if tensor is main.tensor and maps is not None and all(set(maps[dim].terms) == axes for axes in wanted):
                return replace_load(block, main, Load(copy, main.indices))
        return block

    def _read_in_order(self, block: Block) -> Block:
        """A move of channels that no engine reaches one by one (anchors times values, say), from a copy in order."""
        load = moved_load(block)
        if load is None or load.tensor.kind == "input":
            return block
        dim = unmoved_dim(block, load, self.partition_of[load.tensor])
        return block if dim is None else self.copies.along(block, load, dim)

    def _partition_axes(self, load: Load) -> set[Axis] | None:
        maps = linear_indices(load.indices)
        if maps is None or load.tensor not in self.partition_of:
            return None
        return set(maps[self.partition_of[load.tensor]].terms) if maps else set()


def _input_dim(graph: Graph, tensor: Tensor) -> int:
    split = next((reader for reader in graph.readers(tensor) if _is_split_input(reader)), None)
    found = input_dim(graph, tensor) if split is None else _dim_of_outer(split)
    return _dim_in_rows(graph, tensor) if found is None else found


def _dim_in_rows(graph: Graph, tensor: Tensor) -> int:
    """The channels, unless DMA would then fill partitions element by element, which takes many times as long.

    Integers are left alone: they are positions mostly, and the PE array does not transpose them. So are long rows,
    which would fill their partitions, and single rows that are read in parts: DMA brings each to its place.
    """
    is_short = len(tensor.shape) == 2 and tensor.shape[1] <= _FEW
    is_in_parts = is_short and tensor.shape[0] == 1 and _is_read_amid(graph, tensor)
    if is_short and tensor.dtype.startswith(("float", "bfloat")) and not is_in_parts:
        return 0
    usual = min(1, max(len(tensor.shape) - 1, 0))
    return _longer_depth(graph, tensor, usual)


def _longer_depth(graph: Graph, tensor: Tensor, usual: int) -> int:
    """The dimension along which all readers sum more than along the usual one, where they sum along both."""
    found = set()
    for reader in graph.readers(tensor):
        data = data_factor(reader) if is_constant_contraction(reader) else None
        summed = _summed(reader, data) if data is not None else {}
        longest = _longest(summed, data) if data is not None and usual in summed else None
        found.add(longest if longest is not None and summed[longest] > summed[usual] else usual)
    return found.pop() if len(found) == 1 else usual


def _is_read_amid(graph: Graph, tensor: Tensor) -> bool:
    """Whether a reader begins at a column that engines could not reach if columns lay on the partitions."""
    read = [load for reader in graph.readers(tensor) for load in loads(reader.expr) if load.tensor is tensor]
    columns = [maps[-1] for maps in map(linear_indices, (load.indices for load in read)) if maps]
    return any(column.const % PARTITION_START_STEP for column in columns)


def _is_at(tensor: Tensor, reader: Block) -> bool:
    """Whether the reader gathers at the positions in the tensor."""
    chosen = gathered(reader)
    return chosen is not None and chosen.positions.tensor is tensor


def _writable_dim(preferred: int, leader: Block, siblings: list[Block]) -> int:
    """`preferred`, or the longest dimension where engines reach what they fill or compute, if they don't so.

    Parts of a tensor may be computed apart, as those of heads; what is only moved gets anywhere.
    """
    if is_constant_contraction(leader) or product_factors(leader):
        return preferred
    shape = leader.output.shape
    written = [linear_indices(block.index) for block in siblings if moved_load(block) is None]
    reachable = [d for d in range(len(shape)) if all(maps is not None and _is_reachable(maps[d]) for maps in written)]
    return preferred if preferred in reachable or not reachable else max(reachable, key=lambda d: shape[d])


def _is_split_input(block: Block) -> bool:
    """Whether it brings in what lies in device memory with more dimensions, which DMA lays out as is best."""
    load = moved_load(block)
    return load is not None and load.tensor.kind in ("input", "scratch") and len(load.indices) < len(block.index)


def _dim_of_outer(block: Block) -> int | None:
    """Of what it brings in, the dimension in which its partitions lie."""
    load, out = moved_load(block), linear_indices(block.index)
    maps = linear_indices(load.indices) if load else None
    here = set(out[_outer_dim(block.output)].terms) if out else set()
    return next((d for d, part in enumerate(maps or ()) if here & set(part.terms)), None)


def _outer_dim(tensor: Tensor) -> int:
    """The first dimension that fills half of the partitions, else the longest: rows of DRAM stay rows."""
    filling = [d for d, extent in enumerate(tensor.shape) if extent >= PARTITIONS // 2]
    return filling[0] if filling else max(range(len(tensor.shape)), key=lambda d: tensor.shape[d])


def _varying(block: Block) -> list[Load]:
    """Loads known at run time only, the largest tensor first."""
    found = [load for load in block.loads() if load.tensor.value is None]
    return sorted(found, key=lambda load: -load.tensor.elems)


def _constant_axes(block: Block) -> set[Axis]:
    """The axes along which a contraction's weights change."""
    constant = [part for part in factors(block.expr) if isinstance(part, Load) and part.tensor.value is not None]
    return {axis for part in constant for m in linear_indices(part.indices) or () for axis in m.terms}


def _depth_dims(block: Block, data: Load) -> list[int]:
    """Dimensions of the data that only summed axes (and the output's channels) move along."""
    maps, out = linear_indices(data.indices), linear_indices(block.index)
    constant = _constant_axes(block)
    written = {axis for m in out or () for axis in m.terms}
    depth = [d for d, m in enumerate(maps or ()) if not set(m.terms) & (written - constant)]
    grouped = [d for d in depth if set((maps or ())[d].terms) & written & constant]
    # where output channels choose among the data's (groups, windows over channels), only that dimension will do
    return grouped or depth


def _summed(block: Block, data: Load) -> dict[int, int]:
    """How far a contraction sums along each dimension that its data may have on the partitions."""
    maps = linear_indices(data.indices) or ()
    return {d: max((axis.extent for axis in maps[d].terms), default=1) for d in _depth_dims(block, data)}


def _longest(summed: Mapping[int, int], data: Load) -> int | None:
    return max(summed, key=lambda d: (summed[d], data.tensor.shape[d]), default=None)


def _contracted_dim(block: Block) -> int | None:
    """The dimension with which a contraction's data best lie on the partitions."""
    data = data_factor(block)
    return None if data is None else _longest(_summed(block, data), data)


def _multiplied_dim(tensor: Tensor, readers: Sequence[Block]) -> int | None:
    """The dimension of an operand along which all its readers sum products of run-time tensors."""
    found = set()
    for reader in readers:
        loads = [load for load in product_factors(reader) or () if load.tensor is tensor]
        found |= {tuple(depth_dims(load, summed_axis(reader))) for load in loads} or {()}
    return next(iter(found))[0] if len(found) == 1 and all(found) else None


def _with_ones(block: Block, load: Load, part: Linear) -> Block:
    axis = next(axis for axis in part.terms if axis.is_reduction)
    ones = Tensor("ones", (axis.extent,), "float32", value=np.ones(axis.extent, np.float32))
    return block.with_expr(Apply("multiply", (load, Load(ones, (Index(axis),)))))


def _is_reachable(part: Linear) -> bool:
    """Whether an engine can read partitions so: one after the other, from where an access may start."""
    return part.const % PARTITION_START_STEP == 0 and (len(part.terms) != 1 or set(part.terms.values()) == {1})
