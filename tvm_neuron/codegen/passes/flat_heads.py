"""flat_heads: rotary embeddings of all heads side by side, as a projection has made them, before heads are parted.

A head of 64 elements fills half of the partitions, one of a single token takes an instruction of its own for each step.
Side by side, heads fill all partitions, and the elements that change places are moved by the PE array: times a matrix.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.codegen.passes.canonical import canonical
from tvm_neuron.codegen.passes.moves import moved_load, read_through
from tvm_neuron.codegen.passes.rotations import Heads, Roles, Rotation, moved_from, plain, rotation
from tvm_neuron.schedule.evaluate import evaluate
from tvm_neuron.schedule.expr import SCAN, Apply, Axis, Expr, Index, Load, Num, axes_of, replace_axes, rewrite
from tvm_neuron.schedule.graph import Block, Graph, linear_indices
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.roles import gathered
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import PARTITIONS

_MOST_TOGETHER = 512
"""Elements of heads that one matrix is for: of more it would be mostly zeros, and they have several."""

_PADDING = 1.0
"""What factors are beside those of what was rotated: often, that is left as it is."""

_SOURCE = "source"

_MOST_CONSTANTS = 1 << 17
"""Elements of a constant that is there for each head: more would take longer to come than they save."""


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


@dataclass(frozen=True)
class _Axes:
    """The axes of a block along heads, their elements, and the other dimensions of the source."""

    head: Axis
    element: Axis
    others: Mapping[int, Axis]


@dataclass
class _Flat:
    """What is computed from one rotation; `rows` keeps what was made for all heads of other rotations, too.

    `tables` make those of them that are constant, before what reads them first.
    """

    graph: Graph
    turned: Rotation
    rows: dict[Any, Tensor]
    tables: list[Block]
    roles: dict[Tensor, Roles | None] = field(default_factory=dict)  # None: it can't be flat
    wholes: dict[Tensor, Tensor] = field(default_factory=dict)  # with what was not rotated beside it: of which
    flat: dict[Tensor, Tensor] = field(default_factory=dict)

    @property
    def heads(self) -> Heads:
        """Of the source."""
        return self.turned.heads

    def change(self) -> bool:
        """Whether anything is computed otherwise now."""
        graph, result = self.graph, self.turned.result
        self.roles[result] = self.turned.roles
        reached, ends = [result], list[Tensor]()
        for tensor in reached:
            readers = dict.fromkeys(block.output for block in graph.readers(tensor))
            flat = [each for each in readers if self._can_be_flat(each) or self._is_whole(each, tensor)]
            ends += [tensor] if len(flat) < len(readers) else []
            reached += [reader for reader in flat if reader not in reached]
        if len(reached) == 1 or result in ends or not _together(self.heads):
            return False
        needed = self._needed(ends)
        for tensor in needed:
            if tensor is result:
                self._turn(tensor)
            elif tensor in self.wholes:
                self._join(tensor, tensor in ends)
            else:
                self._compute(tensor, tensor in ends)
        return True

    def _can_be_flat(self, tensor: Tensor) -> bool:
        if tensor not in self.roles:
            self.roles[tensor] = None
            self.roles[tensor] = self._roles_of(tensor)
        return self.roles[tensor] is not None

    def _roles_of(self, tensor: Tensor) -> Roles | None:
        writers = self.graph.writers(tensor)
        if tensor.kind != "temp" or len(writers) != 1 or writers[0].combine or gathered(writers[0]):
            return None
        (block,) = writers
        axes = self._axes(block)
        written = linear_indices(block.index)
        if axes is None or written is None or not _is_arithmetic(block.expr, axes):
            return None
        place = {plain(part): d for d, part in enumerate(written)}
        named = [axes.head, axes.element, *axes.others.values()]
        if any(axis not in place for axis in named):
            return None
        if any(axis.extent > 1 and axis not in named for axis in block.axes):
            return None
        if not all(self._can_be_for_all(load, axes) for load in block.loads()):
            return None
        others = {dim: place[axis] for dim, axis in axes.others.items()}
        return Roles(place[axes.head], place[axes.element], axes.element.extent, others)

    def _is_whole(self, tensor: Tensor, rotated: Tensor) -> bool:
        """Whether it is what was rotated beside the rest of each head, which the same arithmetic leaves as it is."""
        if self.roles.get(tensor) is not None or tensor.kind != "temp":
            return self.wholes.get(tensor) is rotated
        heads, roles = self.heads, self.roles[rotated]
        assert roles is not None
        if roles.width == heads.size or self._beside(rotated) != _SOURCE:
            return False
        if tensor.shape != tuple(heads.size if d == roles.element else n for d, n in enumerate(rotated.shape)):
            return False
        filled = np.zeros(heads.size, np.bool_)
        for writer in self.graph.writers(tensor):
            load, written = moved_load(writer), linear_indices(writer.index)
            axes = self._read_along(load, is_any=True) if load else None
            if load is None or axes is None or written is None or load.tensor not in (heads.source, rotated):
                return False
            part = written[roles.element]
            first = self._first_of(load)
            if plain(Linear(0, part.terms)) is not axes.element or part.const != first:
                return False
            if plain(written[roles.head]) is not axes.head:
                return False
            if any(plain(written[d]) is not axes.others[dim] for dim, d in roles.others.items()):
                return False
            filled[first : first + axes.element.extent] = True
        if not filled.all():
            return False
        self.roles[tensor] = replace(roles, width=heads.size)
        self.wholes[tensor] = rotated
        return True

    def _first_of(self, load: Load) -> int:
        """The first element of each head that is read."""
        maps = linear_indices(load.indices) or ()
        return maps[self.heads.dim].const if load.tensor is self.heads.source else self.heads.first

    def _beside(self, tensor: Tensor) -> float | str | None:
        """What the flat tensor is beside what was rotated: a number, the source, or (None) something else."""
        if tensor is self.turned.result:
            return 0.0
        if self.roles.get(tensor) is None or tensor in self.wholes:
            return None
        (block,) = self.graph.writers(tensor)
        axes = self._axes(block)
        return self._beside_of(block.expr, axes.element) if axes else None

    def _beside_of(self, expr: Expr, element: Axis) -> float | str | None:
        match expr:
            case Num(value):
                return value
            case Load(tensor, _):
                if tensor is self.heads.source:
                    return _SOURCE
                if self._read_along(expr) is not None:
                    return self._beside(tensor)
                return _PADDING if element in set(axes_of(expr)) else None
            case Apply("multiply", (left, right)):
                pair = self._beside_of(left, element), self._beside_of(right, element)
                if None not in pair and 1 in pair:
                    return pair[1] if pair[0] == 1 else pair[0]
            case Apply("add", (left, right)):
                pair = self._beside_of(left, element), self._beside_of(right, element)
                if None not in pair and 0 in pair:
                    return pair[1] if pair[0] == 0 else pair[0]
            case Apply("subtract", (left, right)):
                return self._beside_of(left, element) if self._beside_of(right, element) == 0 else None
        return None

    def _axes(self, block: Block) -> _Axes | None:
        """The axes along which the block reads heads, all of them alike; None if it reads none, or they differ."""
        found: _Axes | None = None
        for load in block.loads():
            if load.tensor.value is not None:
                continue
            axes = self._read_along(load)
            if axes is not None and found is not None and axes != found:
                return None
            found = axes or found
        return found

    def _read_along(self, load: Load, is_any: bool = False) -> _Axes | None:
        """The axes along which heads are read, the rotated part of them or all; None if they are not."""
        maps, heads = linear_indices(load.indices), self.heads
        if maps is None:
            return None
        if load.tensor is heads.source:
            steps = dict(maps[heads.dim].terms)
            head = next((axis for axis, step in steps.items() if step == heads.size), None)
            element = next((axis for axis, step in steps.items() if step == 1), None)
            if head is None or element is None or len(steps) != 2:
                return None
            first, width = maps[heads.dim].const, element.extent
            if not is_any and (first, width) not in ((heads.first, heads.width), (0, heads.size)):
                return None
            if first + width > heads.size:
                return None
            others = {d: plain(m) for d, m in enumerate(maps) if d != heads.dim and heads.source.shape[d] > 1}
        elif self._can_be_flat(load.tensor):
            roles = self.roles[load.tensor]
            assert roles is not None
            head, element = plain(maps[roles.head]), plain(maps[roles.element])
            others = {dim: plain(maps[d]) for dim, d in roles.others.items()}
            if element is not None and element.extent != roles.width:
                return None
        else:
            return None
        if head is None or element is None or head.extent != heads.count:
            return None
        known = {dim: axis for dim, axis in others.items() if axis is not None}
        if len(known) < len(others) or any(axis.extent != heads.source.shape[d] for d, axis in known.items()):
            return None
        return _Axes(head, element, known)

    def _needed(self, ends: list[Tensor]) -> list[Tensor]:
        """The flat tensors that these are made of, in the order of the graph."""
        needed, pending = dict.fromkeys(ends), list(ends)
        while pending:
            tensor = pending.pop()
            if tensor is self.turned.result:
                continue
            loads = (load for writer in self.graph.writers(tensor) for load in writer.loads())
            for load in loads:
                if self.roles.get(load.tensor) is not None and load.tensor not in needed:
                    needed[load.tensor] = None
                    pending.append(load.tensor)
        return [tensor for tensor in self.graph.tensors() if tensor in needed]

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

    def _compute(self, tensor: Tensor, is_end: bool) -> None:
        """Arithmetic on flat tensors; what ends it is moved to where it was."""
        (block,) = self.graph.writers(tensor)
        heads, source, axes = self.heads, self.heads.source, self._axes(block)
        assert axes is not None
        element = Axis("c", source.shape[heads.dim])
        new = {d: Axis(f"a{d}", extent) for d, extent in enumerate(source.shape) if d != heads.dim}
        by: dict[Axis, Expr] = {axis: Index(new[d]) for d, axis in axes.others.items()}
        index = _index(new, heads.dim, Index(element))

        def leaf(part: Num | Index | Load) -> Expr:
            if not isinstance(part, Load):
                return part
            if self._read_along(part) is not None:
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
        moved = [block.with_expr(Load(flat, _read_at(heads, axes)))] if is_end else []
        self.graph.replace(block, *map(canonical, (computed, *moved)))

    def _join(self, tensor: Tensor, is_end: bool) -> None:
        """What was rotated and the rest, which lie beside each other by now."""
        roles, heads = self.roles[tensor], self.heads
        assert roles is not None
        self.flat[tensor] = flat = self.flat[self.wholes[tensor]]
        first, *others = self.graph.writers(tensor)
        for block in others:
            self.graph.replace(block)
        axes = tuple(Axis(f"a{d}", extent) for d, extent in enumerate(tensor.shape))
        place = _Axes(axes[roles.head], axes[roles.element], {d: axes[at] for d, at in roles.others.items()})
        moved = Block(first.origin, axes, tensor, tuple(map(Index, axes)), Load(flat, _read_at(heads, place)))
        self.graph.replace(first, *([canonical(moved)] if is_end else []))

    def _for_all(self, block: Block, load: Load, axes: _Axes) -> Tensor:
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
        source = self._origin_of(load)
        dims = _dims_along(source, axes.element)
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
            beside = np.tile(np.where(chosen.any(axis=0), 0, _PADDING).astype(rows.dtype), heads.count)
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

    def _can_be_for_all(self, load: Load, axes: _Axes) -> bool:
        """Whether it is part of heads, or the same for all: few constants, or along one dimension of a tensor."""
        used = set(axes_of(load))
        if self._read_along(load) is not None:
            return True
        if axes.head in used:
            return False
        if axes.element not in used:
            return True
        if load.tensor.value is not None:
            others = prod(axis.extent for axis in axes.others.values() if axis in used)
            return others * self.heads.count * self.heads.size <= _MOST_CONSTANTS
        source = self._origin_of(load)
        dims = _dims_along(source, axes.element)
        return len(dims) == 1 and set(axes_of(source.indices[dims[0]])) == {axes.element}

    def _origin_of(self, load: Load) -> Load:
        """Where what is read lay before it was moved, if it was."""
        while isinstance(further := moved_from(self.graph, load.tensor, load.indices), Load):
            load = further
        return load

    def _tiled(self, load: Load, others: list[Axis], element: Axis, shape: tuple[int, ...]) -> NDArray[Any]:
        heads, width = self.heads, element.extent
        grid = np.broadcast_to(evaluate(load, [*others, element]), (*shape, width))
        first = heads.first_of(width)
        beside = [(0, 0)] * len(others) + [(first, heads.size - first - width)]
        whole = np.pad(grid, beside, constant_values=_PADDING)
        return np.tile(whole, heads.count)


def _heads_at(heads: Heads, axes: _Axes) -> Expr:
    """Where an element of a head lies among all."""
    return Linear(heads.first_of(axes.element.extent), {axes.head: heads.size, axes.element: 1}).expr()


def _read_at(heads: Heads, axes: _Axes) -> tuple[Expr, ...]:
    """An element of a head in a flat tensor."""
    others = {d: axes.others.get(d, Axis(f"a{d}", 1)) for d in range(len(heads.source.shape)) if d != heads.dim}
    return _index(others, heads.dim, _heads_at(heads, axes))


def _dims_along(load: Load, axis: Axis) -> list[int]:
    """The dimensions in which it is read along an axis."""
    return [d for d, part in enumerate(load.indices) if axis in set(axes_of(part))]


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


def _is_arithmetic(expr: Expr, axes: _Axes) -> bool:
    """Whether it is made of numbers and loads alone, each of them by its indices."""
    match expr:
        case Apply(op, args):
            return op != SCAN and all(_is_arithmetic(arg, axes) for arg in args)
        case Load(_, indices):
            maps = linear_indices(indices)
            return maps is not None and all(s > 0 for m in maps for s in m.terms.values())
    return isinstance(expr, Num)
