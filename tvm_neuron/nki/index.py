"""Index and Mask: whole numbers over a lattice, affine in each of its axes, and comparisons of them."""

from collections.abc import Sequence
from typing import Any

from tvm_neuron.nki.source import wrong

Axes = tuple[tuple[int, int], ...]  # (step, count) of each axis


class Index:
    """`start + sum(step * i)` over the axes of a lattice; arithmetic broadcasts axes as NumPy does."""

    __slots__ = ("axes", "start")
    __array_ufunc__ = None  # so that NumPy's numbers leave arithmetic to this class

    def __init__(self, start: int, axes: Axes) -> None:
        self.start, self.axes = start, axes

    @property
    def shape(self) -> tuple[int, ...]:
        """Counts of the axes."""
        return tuple(count for _, count in self.axes)

    def __getitem__(self, key: Any) -> "Index":
        """Adds axes of size one: `i[:, None]`."""
        keys = key if isinstance(key, tuple) else (key,)
        left, axes = list(self.axes), []
        for each in keys:
            if each is None:
                axes.append((0, 1))
            elif each == slice(None) and left:
                axes.append(left.pop(0))
            else:
                raise wrong(f"an index lattice of shape {list(self.shape)} takes only ':' and None, not {each!r}")
        return Index(self.start, (*axes, *left))

    def __add__(self, other: Any) -> "Index":
        return combined(self, 1, as_index(other), 1)

    def __sub__(self, other: Any) -> "Index":
        return combined(self, 1, as_index(other), -1)

    def __rsub__(self, other: Any) -> "Index":
        return combined(as_index(other), 1, self, -1)

    def __mul__(self, factor: Any) -> "Index":
        if isinstance(factor, Index) and not any(count > 1 for _, count in factor.axes):
            factor = factor.start
        if isinstance(factor, Index):
            raise wrong("two index lattices are multiplied; an index is affine: multiply by a number")
        by = int(factor)
        return Index(self.start * by, tuple((step * by, count) for step, count in self.axes))

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> "Index":
        return self * -1

    def __ge__(self, other: Any) -> "Mask":
        return Mask((self - other,))

    def __gt__(self, other: Any) -> "Mask":
        return Mask((self - other - 1,))

    def __le__(self, other: Any) -> "Mask":
        return Mask((as_index(other) - self,))

    def __lt__(self, other: Any) -> "Mask":
        return Mask((as_index(other) - self - 1,))

    def __eq__(self, other: object) -> "Mask":  # type: ignore[override]
        difference = self - other
        return Mask((difference, -difference))

    __hash__ = None  # type: ignore[assignment]

    def span(self) -> tuple[int, int]:
        """Smallest and largest value."""
        moves = [step * (count - 1) for step, count in self.axes]
        return self.start + sum(min(0, move) for move in moves), self.start + sum(max(0, move) for move in moves)


class Mask:
    """Where each of some indices is at least 0."""

    __slots__ = ("tests",)
    __array_ufunc__ = None

    def __init__(self, tests: tuple[Index, ...]) -> None:
        self.tests = tests

    def __and__(self, other: Any) -> "Mask":
        if isinstance(other, Mask):
            return Mask(self.tests + other.tests)
        return self if other else Mask((Index(-1, ()),))

    __rand__ = __and__

    def __bool__(self) -> bool:
        raise wrong("a mask over an index lattice has no truth value: pass it as mask=, or compare loop indices")

    @property
    def rank(self) -> int:
        """Axes of the lattice."""
        return max(len(test.axes) for test in self.tests)

    def bounds(self, rank: int) -> dict[int, tuple[int, int]]:
        """From which to which place (exclusive) each axis, counted from the last (-1), is left; an empty one if none.

        Of tiles of `rank` axes, more than the lattice has, its first axis is the first one all the same, partitions.

        Raises:
            KernelError: a test bounds several axes at once.
        """
        found: dict[int, tuple[int, int]] = {}
        for test in self.tests:
            low, high = test.span()
            if low >= 0:
                continue
            moving = [at for at, (step, count) in enumerate(test.axes) if step and count > 1]
            if high < 0:
                return {-1: (0, 0)}
            if len(moving) > 1:
                raise wrong(
                    "a mask bounds several axes of its lattice at once; an instruction covers a box: use affine_select"
                )
            step, count = test.axes[moving[0]]
            first, end = (-(test.start // step), count) if step > 0 else (0, test.start // -step + 1)
            axis = moving[0] - len(test.axes)
            axis = -rank if -axis == self.rank and 1 < self.rank < rank else axis
            before = found.get(axis, (0, count))
            found[axis] = max(first, before[0]), min(end, before[1], count)
        return {-1: (0, 0)} if any(first >= end for first, end in found.values()) else found


def as_mask(value: Any) -> Mask | None:
    """A mask of the kernel's: a comparison of loop indices alone holds everywhere or nowhere."""
    if value is None or isinstance(value, Mask):
        return value
    return None if value else Mask((Index(-1, ()),))


def as_index(value: Any) -> Index:
    """A number as an index without axes."""
    return value if isinstance(value, Index) else Index(int(value), ())


def combined(left: Index, by_left: int, right: Index, by_right: int) -> Index:
    """left * by_left + right * by_right, axes broadcast.

    Raises:
        KernelError: the lattices don't broadcast.
    """
    rank = max(len(left.axes), len(right.axes))
    axes = []
    for (step, count), (other_step, other_count) in zip(_padded(left, rank), _padded(right, rank), strict=True):
        if count != other_count and 1 not in (count, other_count):
            raise wrong(f"index lattices of shapes {list(left.shape)} and {list(right.shape)} don't broadcast")
        most = max(count, other_count)
        moved = (step * by_left if count == most else 0) + (other_step * by_right if other_count == most else 0)
        axes.append((moved, most))
    return Index(left.start * by_left + right.start * by_right, tuple(axes))


def _padded(index: Index, rank: int) -> Axes:
    return ((0, 1),) * (rank - len(index.axes)) + index.axes


def arange(*bounds: Any) -> Index:
    """The vector from `start` (0) to `stop`, by `step` (1)."""
    start, stop, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    count = len(range(int(start), int(stop), int(step)))
    if count < 1:
        raise wrong(f"arange{tuple(int(bound) for bound in bounds)} is empty")
    return Index(int(start), ((int(step), count),))


class Lattice(tuple[Index, ...]):
    """The indices of a dense lattice, also by name: `.p`, then the free axes `.x` (one), `.y .x`, `.z .y .x` ..."""

    __slots__ = ()

    @property
    def p(self) -> Index:
        """The first axis."""
        return self[0]

    @property
    def x(self) -> Index:
        """The first free axis."""
        return self[1]

    @property
    def y(self) -> Index:
        """The second free axis."""
        return self[2]

    @property
    def z(self) -> Index:
        """The third free axis."""
        return self[3]

    @property
    def w(self) -> Index:
        """The fourth free axis."""
        return self[4]


class Mgrid:
    """`nl.mgrid[0:P, 0:N]`: a dense lattice."""

    def __getitem__(self, key: Any) -> Lattice:
        slices: Sequence[slice] = key if isinstance(key, tuple) else (key,)
        vectors = [arange(each.start or 0, each.stop, each.step or 1) for each in slices]
        rank = len(vectors)
        ones = [((0, 1),) * at for at in range(rank)]
        return Lattice(Index(v.start, (*ones[at], *v.axes, *ones[rank - 1 - at])) for at, v in enumerate(vectors))
