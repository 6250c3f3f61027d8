"""head_roles: what is computed from rotated heads, element by element, alike for all heads: all of it can lie flat."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from tvm_neuron.codegen.passes.moves import moved_load
from tvm_neuron.codegen.passes.rotations import Heads, Roles, Rotation, moved_from, plain
from tvm_neuron.schedule.expr import SCAN, Apply, Axis, Expr, Load, Num, axes_of
from tvm_neuron.schedule.graph import Block, Graph, linear_indices
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.roles import gathered
from tvm_neuron.schedule.tensor import Tensor

PADDING = 1.0
"""What factors are beside those of what was rotated: often, that is left as it is."""

_SOURCE = "source"

_MOST_CONSTANTS = 1 << 17
"""Elements of a constant that is there for each head: more would take longer to come than they save."""


@dataclass(frozen=True)
class HeadAxes:
    """The axes of a block along heads, their elements, and the other dimensions of the source."""

    head: Axis
    element: Axis
    others: Mapping[int, Axis]


@dataclass
class HeadRoles:
    """Which dimensions of tensors are heads and their elements, of those that are made of one rotation."""

    graph: Graph
    turned: Rotation
    roles: dict[Tensor, Roles | None] = field(default_factory=dict)  # None: it can't be flat
    wholes: dict[Tensor, Tensor] = field(default_factory=dict)  # with what was not rotated beside it: of which

    def __post_init__(self) -> None:
        self.roles[self.turned.result] = self.turned.roles

    @property
    def heads(self) -> Heads:
        """Of the source."""
        return self.turned.heads

    def ends(self) -> list[Tensor]:
        """What is read by others than what can be flat, too; nothing where nothing is computed from the rotation."""
        reached, ends = [self.turned.result], list[Tensor]()
        for tensor in reached:
            readers = dict.fromkeys(block.output for block in self.graph.readers(tensor))
            flat = [each for each in readers if self._can_be_flat(each) or self._is_whole(each, tensor)]
            ends += [tensor] if len(flat) < len(readers) else []
            reached += [reader for reader in flat if reader not in reached]
        return ends if len(reached) > 1 else []

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
        axes = self.axes(block)
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
            axes = self.read_along(load, is_any=True) if load else None
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
        axes = self.axes(block)
        return self._beside_of(block.expr, axes.element) if axes else None

    def _beside_of(self, expr: Expr, element: Axis) -> float | str | None:
        match expr:
            case Num(value):
                return value
            case Load(tensor, _):
                if tensor is self.heads.source:
                    return _SOURCE
                if self.read_along(expr) is not None:
                    return self._beside(tensor)
                return PADDING if element in set(axes_of(expr)) else None
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

    def axes(self, block: Block) -> HeadAxes | None:
        """The axes along which the block reads heads, all of them alike; None if it reads none, or they differ."""
        found: HeadAxes | None = None
        for load in block.loads():
            if load.tensor.value is not None:
                continue
            axes = self.read_along(load)
            if axes is not None and found is not None and axes != found:
                return None
            found = axes or found
        return found

    def read_along(self, load: Load, is_any: bool = False) -> HeadAxes | None:
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
        return HeadAxes(head, element, known)

    def needed(self, ends: list[Tensor]) -> list[Tensor]:
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

    def _can_be_for_all(self, load: Load, axes: HeadAxes) -> bool:
        """Whether it is part of heads, or the same for all: few constants, or along one dimension of a tensor."""
        used = set(axes_of(load))
        if self.read_along(load) is not None:
            return True
        if axes.head in used:
            return False
        if axes.element not in used:
            return True
        if load.tensor.value is not None:
            others = prod(axis.extent for axis in axes.others.values() if axis in used)
            return others * self.heads.count * self.heads.size <= _MOST_CONSTANTS
        source = self.origin_of(load)
        dims = dims_along(source, axes.element)
        return len(dims) == 1 and set(axes_of(source.indices[dims[0]])) == {axes.element}

    def origin_of(self, load: Load) -> Load:
        """Where what is read lay before it was moved, if it was."""
        while isinstance(further := moved_from(self.graph, load.tensor, load.indices), Load):
            load = further
        return load


def dims_along(load: Load, axis: Axis) -> list[int]:
    """The dimensions in which it is read along an axis."""
    return [d for d, part in enumerate(load.indices) if axis in set(axes_of(part))]


def _is_arithmetic(expr: Expr, axes: HeadAxes) -> bool:
    """Whether it is made of numbers and loads alone, each of them by its indices."""
    match expr:
        case Apply(op, args):
            return op != SCAN and all(_is_arithmetic(arg, axes) for arg in args)
        case Load(_, indices):
            maps = linear_indices(indices)
            return maps is not None and all(s > 0 for m in maps for s in m.terms.values())
    return isinstance(expr, Num)
