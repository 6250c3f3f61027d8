"""join_dims: neighbouring dimensions that blocks count together, such as [rows, columns], become one of rows * columns.

A norm or a product over the channels of an image [rows, columns, channels] has as many independent rows as the image
has positions; with one dimension on the partitions, it would use as many of them as the image has columns. So it is for
products of images [channels, rows, columns] whose results count positions by one dimension, as attention's scores do.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import chain

from tvm_neuron.codegen.passes.spread_rows import counted_values
from tvm_neuron.schedule.expr import Axis, Expr, Index, Load, Num, axes_of, every_load, rewrite
from tvm_neuron.schedule.graph import Block, Graph, linear_indices
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.roles import gathered
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import PARTITIONS

Dim = tuple[Tensor, int]
Pair = tuple[Axis, Axis]


@dataclass(eq=False)
class _Group:
    """Dimensions that can be joined with the next one each, and the blocks that count both together, by which axes."""

    dims: set[Dim] = field(default_factory=set)
    blocks: dict[Block, set[Pair]] = field(default_factory=dict)
    is_summed_beside: bool = False  # something is summed over another dimension, for each place in these
    is_counted_as_one: bool = False  # so that something else counts these places by a single dimension


def join_dims(graph: Graph, as_results: bool = False) -> None:
    """Joins what lies before the last dimension of a tensor, where sums over others have such places.

    Or else, `as_results`, what results of sums count as one dimension.
    """
    while (group := _wanted(graph, as_results)) is not None:
        _Join(graph, group)


def _wanted(graph: Graph, as_results: bool) -> _Group | None:
    found: dict[Dim, _Group] = {}
    for block in graph.blocks:
        every = (linear_indices(indices) or () for _, indices in _places(block)) if block.combine else ()
        parts = list(chain.from_iterable(every))
        for pair, dims in _together(block).items():
            group = _united(found, dims)
            group.blocks.setdefault(block, set()).add(pair)
            is_of_sums = bool(block.combine) and not pair[0].is_reduction
            group.is_summed_beside |= is_of_sums
            group.is_counted_as_one |= is_of_sums and any(_is_joined(part, *pair) for part in parts)
    return next((group for group in dict.fromkeys(found.values()) if _is_wanted(graph, group, as_results)), None)


def _is_wanted(graph: Graph, group: _Group, as_results: bool) -> bool:
    """Whether single dimensions leave partitions idle for what is summed beside them."""
    tensors = {tensor for tensor, _ in group.dims}
    if any(len({writer in group.blocks for writer in graph.writers(tensor)}) > 1 for tensor in tensors):
        return False
    if len(tensors) < len(group.dims):
        return False
    if as_results:
        return group.is_counted_as_one
    inside = [(t, d) for t, d in group.dims if d + 2 < len(t.shape) and t.shape[-1] > 1]
    few = any(max(t.shape[d], t.shape[d + 1]) < PARTITIONS for t, d in inside)
    return few and group.is_summed_beside


def _together(block: Block) -> dict[Pair, list[Dim]]:
    """Pairs of axes that count temporary tensors' neighbouring dimensions, and those.

    Elsewhere they count at most one dimension together: what has it joined already, as heads that read all positions.
    """
    if gathered(block) is not None:
        return {}
    uses = Counter(counted_values(block.expr))
    found: dict[Pair, list[Dim]] = {}
    every = [(tensor, indices, linear_indices(indices)) for tensor, indices in _places(block)]
    for tensor, indices, maps in every:
        uses.update(axis for index in indices for axis in axes_of(index))
        for d in range(len(tensor.shape) - 1):
            pair = in_step(tensor, maps, d) if maps and tensor.kind == "temp" and tensor.value is None else None
            if pair is not None:
                found.setdefault(pair, []).append((tensor, d))
    parts = [part for _, _, maps in every for part in maps or ()]
    return {
        (outer, inner): dims
        for (outer, inner), dims in found.items()
        if outer.is_reduction == inner.is_reduction
        and uses[outer] == uses[inner] == len(dims) + sum(_is_joined(part, outer, inner) for part in parts)
    }


def _is_joined(part: Linear, outer: Axis, inner: Axis) -> bool:
    """Whether an index counts both axes as one."""
    return inner in part.terms and part.terms.get(outer) == inner.extent * part.terms[inner]


def _united(found: dict[Dim, _Group], dims: list[Dim]) -> _Group:
    first = found.setdefault(dims[0], _Group({dims[0]}))
    for dim in dims[1:]:
        other = found.setdefault(dim, _Group({dim}))
        if other is not first:
            first.dims |= other.dims
            for block, pairs in other.blocks.items():
                first.blocks.setdefault(block, set()).update(pairs)
            first.is_summed_beside |= other.is_summed_beside
            first.is_counted_as_one |= other.is_counted_as_one
            found |= dict.fromkeys(other.dims, first)
    return first


def _places(block: Block) -> list[tuple[Tensor, tuple[Expr, ...]]]:
    return list(dict.fromkeys([(block.output, block.index), *((x.tensor, x.indices) for x in every_load(block.expr))]))


def in_step(tensor: Tensor, maps: tuple[Linear, ...], d: int) -> Pair | None:
    """The two axes that count a dimension and the next one, each all of it."""
    outer, inner = (_counter(maps[at], tensor.shape[at]) for at in (d, d + 1))
    return (outer, inner) if outer is not None and inner is not None and outer is not inner else None


def _counter(part: Linear, extent: int) -> Axis | None:
    """The axis that alone counts all of a dimension of several elements."""
    whole = [axis for axis, step in part.terms.items() if step == 1 and axis.extent == extent > 1]
    return whole[0] if whole and len(part.terms) == 1 and not part.const else None


class _Join:
    """Joins the dimensions of a group, for its blocks; others have the tensors as they were, moved."""

    def __init__(self, graph: Graph, group: _Group) -> None:
        self.at = dict(group.dims)
        self.joined = {tensor: with_joined(tensor, d) for tensor, d in group.dims}
        blocks: list[Block] = []
        for block in graph.blocks:
            is_joined = block in group.blocks
            blocks.append(self._block(block, group.blocks[block]) if is_joined else block)
            tensor = block.output
            if tensor not in self.at or block is not graph.writers(tensor)[-1]:
                continue
            if any((reader in group.blocks) != is_joined for reader in graph.readers(tensor)):
                blocks.append(self._moved(block, not is_joined))
        graph.blocks = blocks

    def _block(self, block: Block, pairs: set[Pair]) -> Block:
        both = {
            (outer, inner): Axis(f"{outer.name}_{inner.name}", outer.extent * inner.extent, outer.is_reduction)
            for outer, inner in pairs
        }

        def place(tensor: Tensor, indices: tuple[Expr, ...]) -> tuple[Tensor, tuple[Expr, ...]]:
            maps, d = linear_indices(indices) or (), self.at.get(tensor)
            pair = None if d is None else in_step(tensor, maps, d)
            joined = (
                [_counted(index, part, both) for index, part in zip(indices, maps, strict=True)] if maps else indices
            )
            if d is None or pair is None:
                return tensor, tuple(joined)
            return self.joined[tensor], (*joined[:d], Index(both[pair]), *joined[d + 2 :])

        def leaf(part: Num | Index | Load) -> Expr:
            return Load(*place(part.tensor, part.indices)) if isinstance(part, Load) else part

        output, index = place(block.output, block.index)
        first, gone = {pair[0]: axis for pair, axis in both.items()}, {inner for _, inner in pairs}
        axes = tuple(first.get(axis, axis) for axis in block.axes if axis not in gone)
        return replace(block, axes=axes, output=output, index=index, expr=rewrite(block.expr, leaf))

    def _moved(self, block: Block, is_joined: bool) -> Block:
        """The move of what the block writes to the joined tensor, or back."""
        tensor = block.output
        d, joined = self.at[tensor], self.joined[tensor]
        axes = tuple(Axis(f"j{at}", extent) for at, extent in enumerate(tensor.shape))
        index: tuple[Expr, ...] = tuple(map(Index, axes))
        merged = Linear(0, {axes[d]: tensor.shape[d + 1], axes[d + 1]: 1}).expr()
        other = (*index[:d], merged, *index[d + 2 :])
        if is_joined:
            return Block(block.origin, axes, joined, other, Load(tensor, index))
        return Block(block.origin, axes, tensor, index, Load(joined, other))


def _counted(index: Expr, part: Linear, both: Mapping[Pair, Axis]) -> Expr:
    """An index that may count two axes as one, by an axis for both."""
    found = [(pair, axis) for pair, axis in both.items() if _is_joined(part, *pair)]
    if not found:
        return index
    terms = dict(part.terms)
    for (outer, inner), axis in found:
        del terms[outer]
        terms[axis] = terms.pop(inner)
    return Linear(part.const, terms).index()


def with_joined(tensor: Tensor, d: int) -> Tensor:
    """A tensor like it, with a dimension and the next one as one."""
    shape = (*tensor.shape[:d], tensor.shape[d] * tensor.shape[d + 1], *tensor.shape[d + 2 :])
    return replace(tensor, name=f"{tensor.name}.joined", shape=shape)
