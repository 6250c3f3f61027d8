"""Tensor and View: what a kernel holds in memory, and a window into it as an access pattern.

A place in a tensor is a vector (block, partition, element): which of its logical tiles, which partition of that, and
how many elements from the start of the partition. In device memory only the last counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, Self

from tvm_neuron.isa.dtypes import DTYPES
from tvm_neuron.nki.index import Index, Mask
from tvm_neuron.nki.source import wrong

Vector = tuple[int, int, int]
Axis = tuple[Vector, int]  # (step, count)
ZERO: Vector = (0, 0, 0)


@dataclass(eq=False, slots=True)
class Tensor:
    """A tensor of a kernel. On chip it is `blocks` logical tiles of [partitions, elems], each with its own life."""

    number: int
    name: str
    memory: str  # "sbuf", "psum" or "hbm"
    dtype: str
    blocks: int
    partitions: int
    elems: int  # of a partition; in device memory, of all
    kind: str = "scratch"  # as of a DramTensor
    made: str = ""  # where in the kernel
    is_zero: set[int] = field(default_factory=set)  # blocks of PSUM that are to hold zeros, but do not yet
    contents: dict[int, Any] = field(default_factory=dict)  # of blocks in PSUM, see `Contents`
    addresses: list[tuple[int, int]] = field(default_factory=list)  # (partition, byte) of blocks that the kernel places


def shifted(start: Vector, step: Vector, by: int) -> Vector:
    """start + step * by."""
    return start[0] + step[0] * by, start[1] + step[1] * by, start[2] + step[2] * by


class View:
    """Elements of a tensor in the order of `axes`. Its methods give views of the same class.

    One by index lattices may reach beyond the tensor until a mask has cut it: `inside` says whether it does not.
    """

    __slots__ = ("_lattice", "axes", "start", "tensor")
    __array_ufunc__ = None

    def __init__(self, tensor: Tensor, start: Vector, axes: Sequence[Axis]) -> None:
        self.tensor, self.start, self.axes = tensor, start, tuple(axes)
        self._lattice: tuple[View, list[Any]] | None = None

    def like(self, start: Vector, axes: Sequence[Axis]) -> Self:
        """Another window into the same tensor."""
        return type(self)(self.tensor, start, axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Counts of the axes."""
        return tuple(count for _, count in self.axes)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.axes)

    @property
    def dtype(self) -> Any:
        """Of the elements."""
        return DTYPES[self.tensor.dtype]

    @property
    def buffer(self) -> str:
        """The memory it lies in."""
        return self.tensor.memory

    @property
    def elems(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def is_whole(self) -> bool:
        """Whether it is all of a tensor in device memory, in order."""
        size = 1
        for step, count in reversed(self.axes):
            if count > 1 and step != (0, 0, size):
                return False
            size *= count
        return self.start == ZERO and size == self.tensor.elems

    def __str__(self) -> str:
        return f"{self.tensor.name or self.tensor.memory}{list(self.shape)}"

    def __len__(self) -> int:
        return self.axes[0][1]

    def __iter__(self) -> Any:
        return (self[at] for at in range(len(self)))

    def __getitem__(self, key: Any) -> Self:
        """The window that a key of numbers, slices, `nl.ds` and `...`, or of index lattices, chooses.

        Raises:
            KernelError: too many indices, both kinds in one key, or out of bounds.
        """
        keys = list(key) if isinstance(key, tuple) else [key]
        if any(each is Ellipsis for each in keys):
            at = next(n for n, each in enumerate(keys) if each is Ellipsis)
            keys[at : at + 1] = [slice(None)] * (self.ndim - len([k for k in keys if k is not None]) + 1)
        count = sum(each is not None for each in keys)
        if self.ndim == 1 < count and self.axes[0][0][1]:
            return self.padded(count)[tuple(keys)]  # one value for each partition: [P] is [P, 1]
        if count > self.ndim:
            raise wrong(f"{len(keys)} indices for {self}, which has {self.ndim} axes")
        if any(isinstance(each, Index) for each in keys):
            return self._by_lattice(keys)
        return self._by_slices(keys)

    def _by_slices(self, keys: list[Any]) -> Self:
        start, axes, left = self.start, list[Axis](), list(self.axes)
        for each in keys:
            if each is None:
                axes.append((ZERO, 1))
                continue
            step, count = left.pop(0)
            if isinstance(each, slice):
                low, high, by = _bounds(each, count, self)
                start = shifted(start, step, low)
                axes.append(((step[0] * by, step[1] * by, step[2] * by), len(range(low, high, by))))
            else:
                start = shifted(start, step, _number(each, count, self))
        return self.inside({}).like(start, (*axes, *left))

    def _by_lattice(self, keys: list[Any]) -> Self:
        keys += [slice(None)] * (self.ndim - len(keys))
        wide = max(len(each.axes) for each in keys if isinstance(each, Index))
        start, steps, counts = self.start, [ZERO] * wide, [1] * wide
        for each, (step, count) in zip(keys, self.axes, strict=True):
            if isinstance(each, slice):
                if each != slice(None) or count != 1:
                    raise wrong(f"an index of {self} mixes index lattices with slices; use one kind")
                continue
            if not isinstance(each, Index):
                start = shifted(start, step, _number(each, count, self))
                continue
            start = shifted(start, step, each.start)
            for at, (move, size) in enumerate(each.axes, wide - len(each.axes)):
                if size > 1 and counts[at] not in (1, size):
                    raise wrong(f"index lattices with axes of {counts[at]} and {size} don't broadcast in {self}")
                if size > counts[at]:
                    steps[at], counts[at] = ZERO, size
                if size == counts[at]:
                    steps[at] = shifted(steps[at], step, move)
        found = self.inside({}).like(start, tuple(zip(steps, counts, strict=True)))
        found._lattice = self, keys
        return found

    def inside(self, bounds: dict[int, tuple[int, int]]) -> Self:
        """Itself, where it lies inside of what it was taken from once `bounds` have cut it; see `narrow`.

        Raises:
            KernelError: it doesn't.
        """
        if self._lattice is None:
            return self
        of, keys = self._lattice
        for axis, (each, (_, count)) in enumerate(zip(keys, of.axes, strict=True)):
            if not isinstance(each, Index):
                continue
            low = high = each.start
            for at, (step, size) in enumerate(each.axes):
                first, end = bounds.get(at - len(each.axes), (0, size)) if size > 1 else (0, size)
                ends = step * first, step * (min(end, size) - 1)
                low, high = low + min(ends), high + max(ends)
            if low < 0 or high >= count:
                raise wrong(
                    f"indices {low} to {high} of axis {axis} of {of}, which has {count}; "
                    "cut them with a mask, or use smaller tiles"
                )
        return self.like(self.start, self.axes)

    def narrow(self, bounds: dict[int, tuple[int, int]]) -> Self:
        """From which to which place each of some axes, counted from the last (-1), is kept; others are kept whole."""
        whole = self.inside(bounds)
        if not bounds:
            return whole
        start, axes = self.start, list(self.axes)
        for axis, (low, high) in bounds.items():
            if -axis <= len(axes) and axes[axis][1] > 1:
                step, count = axes[axis]
                start = shifted(start, step, low)
                axes[axis] = step, min(high, count) - low
        return whole.like(start, axes)

    def reshape(self, *shape: Any, **words: Any) -> Self:
        """The same elements in another shape, where steps allow it."""
        given = words.get("shape", shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape)
        wanted = [int(each) for each in given]
        if -1 in wanted:
            wanted[wanted.index(-1)] = self.elems // -prod(wanted)
        if prod(wanted) != self.elems:
            raise wrong(f"{self} has {self.elems} elements; shape {wanted} has {prod(wanted)}")
        return self.inside({}).like(self.start, _split(self, wanted))

    def expand_dims(self, axis: int) -> Self:
        """With one more axis, of size 1."""
        axes = list(self.axes)
        axes.insert(axis if axis >= 0 else len(axes) + 1 + axis, (ZERO, 1))
        return self.inside({}).like(self.start, axes)

    def permuted(self, order: Sequence[int]) -> Self:
        """With its axes in another order."""
        return self.inside({}).like(self.start, [self.axes[at] for at in order])

    def padded(self, rank: int) -> Self:
        """With axes of size 1 for `rank` axes in all: behind the partitions' if it has no other, else before."""
        if self.ndim >= rank:
            return self
        ones = [(ZERO, 1)] * (rank - self.ndim)
        is_column = self.ndim == 1 and self.axes[0][0][1] != 0
        return self.inside({}).like(self.start, [*self.axes, *ones] if is_column else [*ones, *self.axes])

    def widened(self, shape: Sequence[int]) -> Self:
        """Broadcast as NumPy does, by steps of 0, but that one value for each partition counts as [P, 1].

        Raises:
            KernelError: the shapes don't fit.
        """
        if self.shape == tuple(shape):
            return self
        axes = list(self.padded(len(shape)).axes)
        while len(axes) > len(shape) and axes[0][1] == 1:
            axes.pop(0)
        if len(axes) != len(shape) or any(have not in (1, want) for (_, have), want in zip(axes, shape, strict=True)):
            raise wrong(f"{self} does not broadcast to {list(shape)}")
        found = [axis if axis[1] == want else (ZERO, want) for axis, want in zip(axes, shape, strict=True)]
        return self.inside({}).like(self.start, found)

    def fitted(self, shape: Sequence[int]) -> Self:
        """With axes of size 1 added or dropped, to have that very shape.

        Raises:
            KernelError: it is not the same but for such axes.
        """
        if self.shape == tuple(shape):
            return self
        full = [axis for axis in self.axes if axis[1] != 1]
        if self.elems != prod(shape):
            raise wrong(f"{self} where shape {list(shape)} is meant: make both of as many elements")
        if [count for _, count in full] != [count for count in shape if count != 1]:
            return self.inside({}).like(self.start, _split(self, list(shape)))
        ones = [axis for axis in self.axes if axis[1] == 1 and axis[0] != ZERO]
        axes: list[Axis] = []
        for count in shape:
            axes.append(full.pop(0) if count != 1 else ones.pop(0) if ones else (ZERO, 1))
        found = self.like(self.start, axes)
        found._lattice = self._lattice if self.ndim == len(shape) else self.inside({})._lattice
        return found


def ds(start: int, size: int) -> slice:
    """The slice from `start` of `size` elements."""
    return slice(start, start + size)


def _number(each: Any, count: int, view: View) -> int:
    if isinstance(each, View | Mask) or not hasattr(each, "__index__"):
        raise wrong(f"{view} is indexed by {type(each).__name__}; an index is a number, a slice or an index lattice")
    at = int(each) + count if each < 0 else int(each)
    if not 0 <= at < count:
        raise wrong(f"index {int(each)} of {view}, whose axis has {count}")
    return at


def _bounds(each: slice, count: int, view: View) -> tuple[int, int, int]:
    start, stop, by = each.start, each.stop, each.step
    low = 0 if start is None else int(start) + count if start < 0 else int(start)
    high = count if stop is None else int(stop) + count if stop < 0 else int(stop)
    step = 1 if by is None else int(by)
    if not 0 <= low < high <= count or step < 1:
        raise wrong(f"slice {low}:{high}:{step} of {view}, whose axis has {count}: stay inside of it, by steps from 1")
    return low, high, step


def _split(view: View, shape: list[int]) -> list[Axis]:
    """The axes of `view` cut and joined to `shape`."""
    left = [axis for axis in view.axes if axis[1] != 1]
    found: list[Axis] = []
    for want in reversed(shape):
        if want == 1:
            found.append((ZERO, 1))
            continue
        have: Axis | None = None
        while have is None or have[1] < want:
            step, count = left.pop()
            if have is None:
                have = step, count
            elif step == (have[0][0] * have[1], have[0][1] * have[1], have[0][2] * have[1]):
                have = have[0], have[1] * count
            else:
                raise wrong(f"{view} can't become {shape} without a copy: its elements don't lie one after the other")
        if have[1] % want:
            raise wrong(f"{view} can't become {shape}: an axis of {have[1]} has no parts of {want}")
        found.append((have[0], want))
        if have[1] > want:
            step = have[0]
            left.append(((step[0] * want, step[1] * want, step[2] * want), have[1] // want))
    return found[::-1]
