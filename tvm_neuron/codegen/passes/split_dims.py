"""split_dims: merged dimensions of temporary tensors, such as [rows * columns * anchors], become several again.

A detector's head makes of [1, anchors * values, rows, columns] the tensors [1, rows * columns * anchors, values]. No
engine can lay such positions out on partitions: they count several axes at once, and DMA would move them one by one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from tvm_neuron.codegen.passes.canonical import canonical
from tvm_neuron.schedule.expr import Apply, Axis, Expr, Index, Load, Num, replace_axes, rewrite
from tvm_neuron.schedule.graph import Block, Graph, linear_indices
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.roles import gathered, is_constant_contraction, product_factors
from tvm_neuron.schedule.tensor import Tensor

Dim = tuple[Tensor, int]


@dataclass(eq=False)
class _Group:
    """Dimensions and axes that count the same positions, and into which factors they are split, outermost first."""

    dims: set[Dim] = field(default_factory=set)
    axes: set[Axis] = field(default_factory=set)
    factors: set[tuple[int, ...]] = field(default_factory=set)


def split_dims(graph: Graph, wanted: Iterable[Tensor]) -> bool:
    """Splits the dimensions of the wanted tensors, and of those that count along with them; whether there were any."""
    groups = _Groups(graph)
    factors: dict[Dim, tuple[int, ...]] = {}
    axes: dict[Axis, tuple[int, ...]] = {}
    for tensor in wanted:
        for d in range(len(tensor.shape)):
            group = groups.of_dim.get((tensor, d))
            if group is not None and len(group.factors) == 1 and groups.closed(group):
                (found,) = group.factors
                factors |= dict.fromkeys(group.dims, found)
                axes |= dict.fromkeys(group.axes, found)
    if factors:
        apply_split(graph, factors, axes)
    return bool(factors)


def apply_split(
    graph: Graph, factors: Mapping[Dim, tuple[int, ...]], axes: Mapping[Axis, tuple[int, ...]]
) -> None:
    """Splits dimensions of temporary tensors, and axes, into such factors, the outermost first."""
    _Split(factors, axes).run(graph)


class _Groups:
    """The groups of a graph's temporary tensors."""

    def __init__(self, graph: Graph) -> None:
        self.of_dim: dict[Dim, _Group] = {}
        self.of_axis: dict[Axis, _Group] = {}
        self.partly: set[Dim] = set()  # also read or written otherwise, or by what needs its dimensions as they are
        for block in graph.blocks:
            for tensor, indices in _places(block):
                if tensor.kind == "temp" and tensor.value is None:
                    self._add(tensor, linear_indices(indices) if _is_counted(block) else None)

    def closed(self, group: _Group) -> bool:
        """Whether nothing else is known of its dimensions than those factors."""
        return self.partly.isdisjoint(group.dims)

    def _add(self, tensor: Tensor, maps: tuple[Linear, ...] | None) -> None:
        for d, extent in enumerate(tensor.shape):
            part = None if maps is None else maps[d]
            factors = None if part is None else _factors(part, extent)
            if extent > 1 and (factors is None or part is None):
                self.partly.add((tensor, d))
            elif factors is not None and part is not None and len(factors) == 1:
                self._join((tensor, d), next(iter(part.terms)))
            elif factors:
                self._group((tensor, d)).factors.add(factors)

    def _group(self, dim: Dim) -> _Group:
        if dim not in self.of_dim:
            self.of_dim[dim] = _Group({dim})
        return self.of_dim[dim]

    def _join(self, dim: Dim, axis: Axis) -> None:
        group, other = self._group(dim), self.of_axis.get(axis)
        group.axes.add(axis)
        self.of_axis[axis] = group
        if other is None or other is group:
            return
        group.dims |= other.dims
        group.axes |= other.axes
        group.factors |= other.factors
        self.of_dim |= dict.fromkeys(other.dims, group)
        self.of_axis |= dict.fromkeys(other.axes, group)


def _is_counted(block: Block) -> bool:
    """Whether it may count dimensions otherwise: what the array multiplies has places of its own for them."""
    return not gathered(block) and not is_constant_contraction(block) and not product_factors(block)


def _places(block: Block) -> list[tuple[Tensor, tuple[Expr, ...]]]:
    return [(block.output, block.index), *((load.tensor, load.indices) for load in block.loads())]


def _factors(part: Linear, extent: int) -> tuple[int, ...] | None:
    """The extents of the axes that together count all of a dimension, outermost first; None if they do not.

    They may count every second element, say: then the innermost factor is how many there are to each.
    """
    size = min(part.terms.values(), default=1)
    if not 0 <= part.const < max(size, 1):
        return None
    found = [size] if size > 1 else []
    for axis, step in sorted(part.terms.items(), key=lambda term: term[1]):
        if step != size:
            return None
        found.append(axis.extent)
        size *= axis.extent
    return tuple(reversed(found)) if size == extent else None


class _Split:
    def __init__(self, factors: Mapping[Dim, tuple[int, ...]], axes: Mapping[Axis, tuple[int, ...]]) -> None:
        self.factors, self.axes = factors, axes
        self.tensors: dict[Tensor, Tensor] = {}
        for tensor in {tensor for tensor, _ in factors}:
            shape = [n for d, extent in enumerate(tensor.shape) for n in factors.get((tensor, d), (extent,))]
            value = None if tensor.value is None else tensor.value.reshape(shape)
            self.tensors[tensor] = replace(tensor, shape=tuple(shape), value=value)

    def run(self, graph: Graph) -> None:
        graph.blocks = [self._block(block) for block in graph.blocks]

    def _block(self, block: Block) -> Block:
        by: dict[Axis, Expr] = {}
        axes: list[Axis] = []
        for axis in block.axes:
            factors = self.axes.get(axis)
            parts = [replace(axis, extent=n) for n in factors] if factors else [axis]
            axes += parts
            if factors:
                by[axis] = _counting(parts)

        def leaf(part: Num | Index | Load) -> Expr:
            return Load(*self._place(part.tensor, part.indices)) if isinstance(part, Load) else part

        index = tuple(replace_axes(part, by) for part in block.index)
        output, index = self._place(block.output, index)
        expr = rewrite(replace_axes(block.expr, by), leaf)
        return canonical(replace(block, axes=tuple(axes), output=output, index=index, expr=expr))

    def _place(self, tensor: Tensor, indices: tuple[Expr, ...]) -> tuple[Tensor, tuple[Expr, ...]]:
        if tensor not in self.tensors:
            return tensor, indices
        found: list[Expr] = []
        for d, index in enumerate(indices):
            found += _digits(index, self.factors.get((tensor, d), ()))
        return self.tensors[tensor], tuple(found)


def _counting(axes: list[Axis]) -> Expr:
    step, terms = 1, {}
    for axis in reversed(axes):
        terms[axis] = step
        step *= axis.extent
    return Linear(0, terms).expr()


def _digits(index: Expr, factors: tuple[int, ...]) -> list[Expr]:
    """The digits of an index in mixed radix."""
    found: list[Expr] = []
    for extent in reversed(factors[1:]):
        found.append(Apply("floormod", (index, Num(extent))))
        index = Apply("floordiv", (index, Num(extent)))
    return [index, *reversed(found)]
