"""Copies: tensors laid out once more, for readers that need another dimension, or more of it, on the partitions."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from math import prod

from tvm_neuron.codegen.passes.canonical import canonical
from tvm_neuron.codegen.passes.in_order import is_in_rows
from tvm_neuron.codegen.passes.moves import moved_load
from tvm_neuron.schedule.expr import Axis, Expr, Index, Load, Num, axes_of, rewrite
from tvm_neuron.schedule.graph import Block, linear_indices
from tvm_neuron.schedule.linear import Linear, counts
from tvm_neuron.schedule.tensor import Tensor


class Copies:
    """Appends the moves that make the copies to `blocks`, and gives back blocks that read them."""

    def __init__(self, partition_of: dict[Tensor, int], blocks: list[Block]) -> None:
        self.partition_of = partition_of
        self.blocks = blocks
        self.whole: dict[tuple[Tensor, int], Tensor] = {}  # by the dimension on the partitions
        self._spread: dict[tuple[Tensor, int], Tensor] = {}  # by the number of channels
        self.temporaries: dict[Tensor, Tensor] = {}  # in the place of outputs

    def along(self, block: Block, load: Load, dim: int) -> Block:
        """The block with this load (others of the same tensor may need another) from a copy laid out along `dim`."""
        tensor = load.tensor
        if (tensor, dim) not in self.whole:
            copy = Tensor(f"{tensor.name}.by{dim}", tensor.shape, tensor.dtype)
            self.whole[tensor, dim] = copy
            self._append(block, copy, dim, tensor)
        return replace_load(block, load, Load(self.whole[tensor, dim], load.indices))

    def spread(self, block: Block, load: Load, channel: Axis) -> Block:
        """The block reading a copy with one and the same content for every channel."""
        tensor = load.tensor
        if (tensor, channel.extent) not in self._spread:
            copy = Tensor(f"{tensor.name}.spread", (channel.extent, *tensor.shape), tensor.dtype, is_spread=True)
            self._spread[tensor, channel.extent] = copy
            axes = _axes(copy.shape)
            self._append(block, copy, 0, tensor, axes, tuple(Index(axis) for axis in axes[1:]))
        there = Load(self._spread[tensor, channel.extent], (Index(channel), *load.indices))
        return canonical(replace_load(block, load, there))

    def shifted(self, block: Block, load: Load) -> Block:
        """The block reading a copy of just what `load` covers, which starts where an engine can reach it."""
        maps = linear_indices(load.indices) or ()
        dim = self.partition_of[load.tensor]
        steps = [max(1, *m.terms.values()) if d == dim and len(m.terms) == 1 else 1 for d, m in enumerate(maps)]
        extents = tuple((m.span[1] - m.span[0]) // step + 1 for m, step in zip(maps, steps, strict=True))
        copy = Tensor(f"{load.tensor.name}.part", extents, load.tensor.dtype)
        axes = _axes(extents)
        source = tuple(Linear(m.span[0], {a: s}).expr() for a, m, s in zip(axes, maps, steps, strict=True))
        self._append(block, copy, dim, load.tensor, axes, source)
        there = tuple(
            (Linear(0, dict.fromkeys(m.terms, 1)) if step > 1 else m + Linear(-m.span[0])).expr()
            for m, step in zip(maps, steps, strict=True)
        )
        return canonical(replace_load(block, load, Load(copy, there)))

    def packed(self, block: Block, load: Load, depth: Axis) -> Block:
        """The block reading a copy [depth, *other axes of the load], however the tensor itself is indexed.

        What lies on the tensor's partitions comes first, so that rows stay rows for the DMA that may have to move them.
        Of windows, which have each element several times, the copy is [depth, *axes beside it, *the other dimensions].
        """
        maps, dim = linear_indices(load.indices) or (), self.partition_of[load.tensor]
        in_order = [*maps[dim : dim + 1], *maps[:dim], *maps[dim + 1 :]]
        used = [depth, *dict.fromkeys(axis for m in in_order for axis in m.terms if axis is not depth)]
        has_windows = prod(axis.extent for axis in used) > load.tensor.elems
        move, there = (has_windows and _depth_apart(block, load, depth)) or moved_apart(block, load, used, "packed")
        self.partition_of[move.output] = 0
        self.blocks.append(move)
        return canonical(replace_load(block, load, there))

    def merged(self, block: Block, load: Load, together: list[Axis]) -> Block:
        """The block reading a copy in which one axis takes the place of some of its own, outermost first.

        What is summed beside them lies on the partitions of the copy, else what does so in the tensor. The copy repeats
        itself along those of them that the load does not have.
        """
        maps, is_summed = linear_indices(load.indices) or (), together[0].is_reduction
        both = Axis("m", prod(axis.extent for axis in together), is_summed)
        used = list(dict.fromkeys([*(axis for m in maps for axis in m.terms), *together]))
        own = {axis: Axis(axis.name, axis.extent) for axis in used}
        kept = [axis for axis in used if axis not in together]
        depth = [axis for axis in kept if axis.is_reduction]
        first = [*depth, *(axis for axis in kept if axis not in depth)]
        steps = {own[axis]: prod(a.extent for a in together[n + 1 :]) for n, axis in enumerate(together)}
        copy = Tensor(f"{load.tensor.name}.merged", (*(axis.extent for axis in first), both.extent), load.tensor.dtype)
        source = tuple(Linear(m.const, {own[axis]: step for axis, step in m.terms.items()}).expr() for m in maps)
        index = (*(Index(own[axis]) for axis in first), Linear(0, steps).expr())
        here = maps[self.partition_of[load.tensor]].terms
        # Of several axes along the tensor's partitions, the one that steps from each to the next.
        along = ((here[axis], d) for d, axis in enumerate(first) if axis in here)
        self.partition_of[copy] = 0 if depth else min(along, default=(0, len(first)))[1]
        move = Block(block.origin, tuple(own.values()), copy, index, Load(load.tensor, source))
        self.blocks.append(canonical(move))
        there = Load(copy, (*map(Index, first), Index(both)))

        def joined(indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
            return tuple(Index(both) if _counts(part, together) else part for part in indices)

        def leaf(part: Num | Index | Load) -> Expr:
            return Load(part.tensor, joined(part.indices)) if isinstance(part, Load) else part

        axes = (*(axis for axis in block.axes if axis not in together), both)
        expr = rewrite(replace_load(block, load, there).expr, leaf)
        return canonical(replace(block, axes=axes, index=joined(block.index), expr=expr))

    def store_in_rows(self, block: Block) -> None:
        """Where an output would be stored element by element, a temporary takes its place and is moved into it.

        That is so if its innermost dimension lies on the partitions; a transposition on the core is quicker.
        """
        tensor, dim = block.output, self.partition_of[block.output]
        outer = [d for d in range(dim) if tensor.shape[d] > 1]
        if tensor.kind != "output" or not outer or any(extent > 1 for extent in tensor.shape[dim + 1 :]):
            return
        load, out = moved_load(block), linear_indices(block.index)
        maps = linear_indices(load.indices) if load else None
        if load and out and maps and is_in_rows(out[dim], maps[self.partition_of[load.tensor]].terms):
            return
        temporary = Tensor(f"{tensor.name}.by{dim}", tensor.shape, tensor.dtype)
        self.temporaries[tensor] = temporary
        self.partition_of[temporary] = dim
        for place, other in enumerate(self.blocks):
            self.blocks[place] = self.read_temporaries(
                replace(other, output=temporary) if other.output is tensor else other
            )
        self._append(block, tensor, max(outer, key=lambda d: tensor.shape[d]), temporary)

    def read_temporaries(self, block: Block) -> Block:
        """The block reading temporaries in the place of outputs."""
        return replace_tensors(block, self.temporaries)

    def _append(
        self, reader: Block, copy: Tensor, dim: int, tensor: Tensor,
        axes: tuple[Axis, ...] | None = None, source: tuple[Expr, ...] | None = None,
    ) -> None:  # fmt: skip
        """Appends the move of `tensor` at `source` to `copy`, whose indices are `axes`."""
        axes = axes or _axes(copy.shape)
        index: tuple[Expr, ...] = tuple(Index(axis) for axis in axes)
        self.partition_of[copy] = dim
        self.blocks.append(canonical(Block(reader.origin, axes, copy, index, Load(tensor, source or index))))


def moved_apart(block: Block, load: Load, used: Sequence[Axis], name: str) -> tuple[Block, Load]:
    """The move of what a load covers to a tensor with a dimension for each of the axes, and the load from there."""
    copy = Tensor(f"{load.tensor.name}.{name}", tuple(axis.extent for axis in used), load.tensor.dtype)
    axes = _axes(copy.shape)
    by = dict(zip(used, axes, strict=True))
    maps = linear_indices(load.indices) or ()
    source = tuple(Linear(m.const, {by[axis]: step for axis, step in m.terms.items()}).expr() for m in maps)
    move = canonical(Block(block.origin, axes, copy, tuple(map(Index, axes)), Load(load.tensor, source)))
    return move, Load(copy, tuple(map(Index, used)))


def _depth_apart(block: Block, load: Load, depth: Axis) -> tuple[Block, Load] | None:
    """The move of a tensor to one with the depth and what counts beside it apart, and the load from there.

    None where the depth does not count all of a dimension, alone or with others.
    """
    maps, shape = linear_indices(load.indices) or (), load.tensor.shape
    at = [d for d, part in enumerate(maps) if depth in part.terms]
    if len(at) != 1 or maps[at[0]].const or counts(maps[at[0]].terms) != shape[at[0]]:
        return None
    (dim,) = at
    beside = [axis for axis in maps[dim].terms if axis is not depth]
    rest = [d for d in range(len(shape)) if d != dim]
    extents = (depth.extent, *(axis.extent for axis in beside), *(shape[d] for d in rest))
    copy, axes = Tensor(f"{load.tensor.name}.packed", extents, load.tensor.dtype), _axes(extents)
    steps = {new: maps[dim].terms[old] for old, new in zip((depth, *beside), axes, strict=False)}
    places = {dim: Linear(0, steps).expr()} | {d: Index(axis) for d, axis in zip(rest, axes[len(steps) :], strict=True)}
    source = Load(load.tensor, tuple(places[d] for d in range(len(shape))))
    move = canonical(Block(block.origin, axes, copy, tuple(map(Index, axes)), source))
    return move, Load(copy, (*map(Index, (depth, *beside)), *(load.indices[d] for d in rest)))


def _counts(index: Expr, axes: Collection[Axis]) -> bool:
    return any(axis in axes for axis in axes_of(index))


def _axes(shape: tuple[int, ...]) -> tuple[Axis, ...]:
    return tuple(Axis(f"c{d}", extent) for d, extent in enumerate(shape))


def replace_tensors(block: Block, by: Mapping[Tensor, Tensor]) -> Block:
    """The block reading other tensors of the same shapes."""

    def leaf(part: Num | Index | Load) -> Expr:
        return Load(by[part.tensor], part.indices) if isinstance(part, Load) and part.tensor in by else part

    return block.with_expr(rewrite(block.expr, leaf))


def replace_load(block: Block, load: Load, by: Load) -> Block:
    """The block reading `by` where it read `load`."""

    def leaf(part: Num | Index | Load) -> Expr:
        return by if part == load else part

    return block.with_expr(rewrite(block.expr, leaf))
