"""flat_heads: rotary embeddings of all heads side by side, as a projection has made them, before heads are parted.

A head of 64 elements fills half of the partitions, one of a single token takes an instruction of its own for each step.
Side by side, heads fill all partitions, and the elements that change places are moved by the PE array: times a matrix.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.codegen.passes.canonical import canonical
from tvm_neuron.codegen.passes.head_roles import PADDING, HeadAxes, HeadRoles, dims_along
from tvm_neuron.codegen.passes.moves import read_through
from tvm_neuron.codegen.passes.rotations import Heads, Rotation, rotation
from tvm_neuron.schedule.evaluate import evaluate
from tvm_neuron.schedule.expr import Apply, Axis, Expr, Index, Load, Num, axes_of, replace_axes, rewrite
from tvm_neuron.schedule.graph import Block, Graph, linear_indices
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import PARTITIONS

_MOST_TOGETHER = 512
"""Elements of heads that one matrix is for: of more it would be mostly zeros, and they have several."""


def flat_heads(graph: Graph) -> bool:
    """Computes on rotated heads before they are parted; whether there are any."""
    rows: dict[Any, Tensor] = {}
    tables: list[Block] = []
    found = [turned for tensor in list(graph.tensors()) if (turned := rotation(graph, tensor)) is not None]
    changed = [_Flat(graph, each, rows, tables).change() for each in found]
    if any(changed):
        for table in tables:  # which come from DRAM in the order of need
            first = graph.readers(table.output)[0]
            graph.replace(first, table, first)
        _drop_unread(graph)
        read_through(graph)
    return any(changed)


def _drop_unread(graph: Graph) -> None:
    for block in reversed(graph.blocks):
        if block.output.kind == "temp" and not graph.readers(block.output):
            graph.replace(block)


@dataclass
class _Flat:
    """What is computed from one rotation; `rows` keeps what was made for all heads of other rotations, too.

    `tables` make those of them that are constant, before what reads them first.
    """

    graph: Graph
    turned: Rotation
    rows: dict[Any, Tensor]
    tables: list[Block]
    flat: dict[Tensor, Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.reach = HeadRoles(self.graph, self.turned)

    @property
    def heads(self) -> Heads:
        """Of the source."""
        return self.turned.heads

    def change(self) -> bool:
        """Whether anything is computed otherwise now."""
        result, ends = self.turned.result, self.reach.ends()
        if not ends or result in ends or not _together(self.heads):
            return False
        needed = self.reach.needed(ends)
        read_else = {t for t in needed if any(block.output not in needed for block in self.graph.readers(t))}
        for tensor in needed:
            if tensor is result:
                self._turn(tensor)
            elif tensor in self.reach.wholes:
                self._join(tensor, tensor in read_else)
            else:
                self._compute(tensor, tensor in read_else)
        return True

    def _turn(self, tensor: Tensor) -> None:
        """The rotation, as products with one matrix."""
        heads, source = self.heads, self.heads.source
        together = _together(heads)
        value = self._matrix(together)
        matrix = Tensor(f"{tensor.name}.turn", value.shape, "float32", value=value)
        matrix = self.rows.setdefault(value.tobytes(), matrix)
        self.flat[tensor] = flat = Tensor(f"{tensor.name}.flat", source.shape, tensor.dtype)
        first, *others = self.graph.writers(tensor)
        blocks: list[Block] = []
        for low in range(0, source.shape[heads.dim], together):
            axes = {d: Axis(f"a{d}", extent) for d, extent in enumerate(source.shape) if d != heads.dim}
            row, depth = Axis("m", together), Axis("k", together, is_reduction=True)
            index = _index(axes, heads.dim, Linear(low, {row: 1}).expr())
            read = _index(axes, heads.dim, Linear(low, {depth: 1}).expr())
            expr = Apply("multiply", (Load(source, read), Load(matrix, (Index(depth), Index(row)))))
            blocks.append(Block(first.origin, (*axes.values(), row, depth), flat, index, expr, "add"))
        self.graph.replace(first, *map(canonical, blocks))
        for block in others:
            self.graph.replace(block)

    def _matrix(self, together: int) -> NDArray[np.float32]:
        heads, found = self.heads, np.zeros((together, together), np.float32)
        for low in range(heads.first, together, heads.size):
            found[low : low + heads.width, low : low + heads.width] = self.turned.matrix
        return found

    def _compute(self, tensor: Tensor, is_read_else: bool) -> None:
        """Arithmetic on flat tensors; what others read, too, is moved to where it was."""
        (block,) = self.graph.writers(tensor)
        heads, source, axes = self.heads, self.heads.source, self.reach.axes(block)
        assert axes is not None
        element = Axis("c", source.shape[heads.dim])
        new = {d: Axis(f"a{d}", extent) for d, extent in enumerate(source.shape) if d != heads.dim}
        by: dict[Axis, Expr] = {axis: Index(new[d]) for d, axis in axes.others.items()}
        index = _index(new, heads.dim, Index(element))

        def leaf(part: Num | Index | Load) -> Expr:
            if not isinstance(part, Load):
                return part
            if self.reach.read_along(part) is not None:
                return Load(self.flat.get(part.tensor, source), index)
            if axes.element not in set(axes_of(part)):
                return Load(part.tensor, tuple(replace_axes(i, by) for i in part.indices))
            rows = self._for_all(block, part, axes)
            used = [by[axis] for axis in axes.others.values() if axis in set(axes_of(part))]
            return Load(rows, (*used, Index(element)))

        if isinstance(block.expr, Load) and block.expr.tensor is source:
            self.flat[tensor] = source
            return
        self.flat[tensor] = flat = Tensor(f"{tensor.name}.flat", source.shape, tensor.dtype)
        computed = Block(block.origin, (*new.values(), element), flat, index, rewrite(block.expr, leaf))
        moved = [block.with_expr(Load(flat, _read_at(heads, axes)))] if is_read_else else []
        self.graph.replace(block, *map(canonical, (computed, *moved)))

    def _join(self, tensor: Tensor, is_read_else: bool) -> None:
        """What was rotated and the rest, which lie beside each other by now."""
        roles, heads = self.reach.roles[tensor], self.heads
        assert roles is not None
        self.flat[tensor] = flat = self.flat[self.reach.wholes[tensor]]
        first, *others = self.graph.writers(tensor)
        for block in others:
            self.graph.replace(block)
        axes = tuple(Axis(f"a{d}", extent) for d, extent in enumerate(tensor.shape))
        place = HeadAxes(axes[roles.head], axes[roles.element], {d: axes[at] for d, at in roles.others.items()})
        moved = Block(first.origin, axes, tensor, tuple(map(Index, axes)), Load(flat, _read_at(heads, place)))
        self.graph.replace(first, *([canonical(moved)] if is_read_else else []))

    def _for_all(self, block: Block, load: Load, axes: HeadAxes) -> Tensor:
        """What is the same for all heads as often as there are heads, made as soon as it can be, for all layers.

        Of constants, too: they come once, and stay.
        """
        heads, used = self.heads, set(axes_of(load))
        others = [axis for axis in axes.others.values() if axis in used]
        value = load.tensor.value
        first, width = heads.first_of(axes.element.extent), axes.element.extent
        alike = heads.size, first, width, _pattern(load, [*others, axes.element])
        key = (load.tensor if value is None else value.tobytes(), load.tensor.dtype, alike)
        if key in self.rows and self.rows[key].shape[-1] >= heads.count * heads.size:
            return self.rows[key]
        shape = (*(axis.extent for axis in others), heads.count * heads.size)
        rows = Tensor(f"{load.tensor.name}.heads", shape, load.tensor.dtype)
        self.rows[key] = rows
        index = tuple(map(Index, others))
        every = Axis("c", shape[-1])
        axes_of_rows = (*others, every)
        if value is not None:
            table = Tensor(rows.name, shape, rows.dtype, value=self._tiled(load, others, axes.element, shape[:-1]))
            read: tuple[Expr, ...] = (*index, Index(every))
            self.tables.append(Block(block.origin, axes_of_rows, rows, read, Load(table, read)))
            return rows
        source = self.reach.origin_of(load)
        dims = dims_along(source, axes.element)
        places = np.broadcast_to(evaluate(source.indices[dims[0]], [axes.element]), (width,))
        chosen = np.zeros((source.tensor.shape[dims[0]], heads.size), np.float32)
        chosen[places, first + np.arange(width)] = 1
        matrix = Tensor(f"{rows.name}.chosen", (len(chosen), shape[-1]), "float32", value=np.tile(chosen, heads.count))
        depth = Axis("k", len(chosen), is_reduction=True)
        read = tuple(Index(depth) if d == dims[0] else part for d, part in enumerate(source.indices))
        expr = Apply("multiply", (Load(source.tensor, read), Load(matrix, (Index(depth), Index(every)))))
        products = Tensor(f"{rows.name}.rotated", shape, rows.dtype) if width < heads.size else rows
        blocks = [Block(block.origin, (*axes_of_rows, depth), products, (*index, Index(every)), expr, "add")]
        if products is not rows:
            beside = np.tile(np.where(chosen.any(axis=0), 0, PADDING).astype(rows.dtype), heads.count)
            padding = Load(Tensor(f"{rows.name}.beside", beside.shape, rows.dtype, value=beside), (Index(every),))
            total = Apply("add", (Load(products, (*index, Index(every))), padding))
            blocks.append(Block(block.origin, axes_of_rows, rows, (*index, Index(every)), total))
        self._put_behind(source.tensor, *map(canonical, blocks))
        return rows

    def _put_behind(self, tensor: Tensor, *blocks: Block) -> None:
        """Adds blocks as soon as a tensor is written: what reads them may be anywhere."""
        writers = self.graph.writers(tensor)
        if writers:
            self.graph.replace(writers[-1], writers[-1], *blocks)
        else:
            first = self.graph.blocks[0]
            self.graph.replace(first, *blocks, first)

    def _tiled(self, load: Load, others: list[Axis], element: Axis, shape: tuple[int, ...]) -> NDArray[Any]:
        heads, width = self.heads, element.extent
        grid = np.broadcast_to(evaluate(load, [*others, element]), (*shape, width))
        first = heads.first_of(width)
        beside = [(0, 0)] * len(others) + [(first, heads.size - first - width)]
        whole = np.pad(grid, beside, constant_values=PADDING)
        return np.tile(whole, heads.count)


def _heads_at(heads: Heads, axes: HeadAxes) -> Expr:
    """Where an element of a head lies among all."""
    return Linear(heads.first_of(axes.element.extent), {axes.head: heads.size, axes.element: 1}).expr()


def _read_at(heads: Heads, axes: HeadAxes) -> tuple[Expr, ...]:
    """An element of a head in a flat tensor."""
    others = {d: axes.others.get(d, Axis(f"a{d}", 1)) for d in range(len(heads.source.shape)) if d != heads.dim}
    return _index(others, heads.dim, _heads_at(heads, axes))


def _pattern(load: Load, axes: list[Axis]) -> tuple[Any, ...]:
    """Where it reads, whatever the axes are called."""
    maps = linear_indices(load.indices) or ()
    return tuple((part.const, *(part.terms.get(axis, 0) for axis in axes)) for part in maps)


def _index(axes: Mapping[int, Axis], dim: int, along: Expr) -> tuple[Expr, ...]:
    found: dict[int, Expr] = {d: Index(axis) for d, axis in axes.items()}
    found[dim] = along
    return tuple(found[d] for d in sorted(found))


def _together(heads: Heads) -> int:
    """Elements of whole heads for one matrix: of all, or of so many as end where partitions do; 0 if none do."""
    every = heads.count * heads.size
    if every <= _MOST_TOGETHER:
        return every
    sizes = range(heads.size, _MOST_TOGETHER + 1, heads.size)
    return next((n for n in sizes if every % n == 0 and n % PARTITIONS == 0), 0)
