"""norm_of: the kernels of a norm, by what they compute: a layer's, an instance's, a group's, from any model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isclose, prod

from tvm_neuron.schedule.expr import Apply, Axis, Expr, Load, Num
from tvm_neuron.schedule.graph import linear_indices
from tvm_neuron.schedule.kernel import ROOT, Kernel, Reduction
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import PARTITIONS


@dataclass(frozen=True)
class Norm:
    """Kernels that pass over rows in turn: their mean, the squares of what is left of them, and the sum of these."""

    mean: Kernel
    squares: Kernel
    spread: Kernel

    @property
    def count(self) -> int:
        """Elements of a row."""
        assert isinstance(self.mean.root, Reduction)
        return prod(axis.extent for axis in self.mean.root.axes)

    @property
    def rows(self) -> int:
        """Rows of each partition."""
        return -(-self.mean.channel.extent // PARTITIONS) * prod(axis.extent for axis in self.mean.free)


def norm_of(
    spread: Kernel, writers: Mapping[Tensor, Sequence[Kernel]], readers: Mapping[Tensor, Sequence[Kernel]]
) -> Norm | None:
    """The kernels of a norm of which one adds up the squares; None if it does not."""
    root = spread.root
    squares = _sole(writers, root.load.tensor) if isinstance(root, Reduction) and root.combine == "add" else None
    if squares is None or len(readers[squares.out]) > 1 or squares.root is not None or squares.by_dma:
        return None
    centred, own = _squared(squares.expr), squares.out_maps
    if isinstance(centred, Load):  # which is kept, for what is divided by the deviation
        made = _sole(writers, centred.tensor)
        if made is None or made.root is not None or made.by_dma or not _is_read_as(centred, own, made.out_maps):
            return None
        centred, own = made.expr, made.out_maps
    match centred:
        case Apply("add" | "subtract" as op, (Load() as x, Load() as middle)):
            mean = _sole(writers, middle.tensor)
        case _:
            return None
    if mean is None or not _is_mean(mean, x, -1.0 if op == "add" else 1.0) or spread.out.kind != "temp":
        return None
    norm, here = Norm(mean, squares, spread), linear_indices(middle.indices)
    by_mean, by_spread = _renaming(_read(mean), own), _renaming(_read(spread), own)
    if here is None or by_mean is None or by_spread is None or linear_indices(x.indices) != own:
        return None
    rows = _renamed(mean.out_maps, by_mean), _renamed(spread.out_maps, by_spread)
    return norm if rows[0] == rows[1] == _plain(here) else None


def _sole(writers: Mapping[Tensor, Sequence[Kernel]], tensor: Tensor) -> Kernel | None:
    """The one that writes all of a tensor that nothing outside sees."""
    found = writers.get(tensor, ())
    return found[0] if len(found) == 1 and tensor.kind == "temp" else None


def _squared(expr: Expr) -> Expr | None:
    match expr:
        case Apply("multiply", (left, right)) if left == right:
            return left
        case Apply("pow", (base, Num(2))):
            return base
        case Apply("square", (base,)):
            return base
    return None


def _is_mean(kernel: Kernel, x: Load, sign: float) -> bool:
    """Whether it is the mean of the tensor's rows, or with the other sign."""
    root = kernel.root
    if not isinstance(root, Reduction) or root.combine != "add" or root.load.tensor is not x.tensor:
        return False
    return isclose(_factor(kernel.expr) * prod(axis.extent for axis in root.axes), sign, rel_tol=1e-6)


def _factor(expr: Expr) -> float:
    """By which the root's value is multiplied; 0 where it becomes something else."""
    match expr:
        case Load() if expr is ROOT:
            return 1.0
        case Apply("multiply", (inner, Num(value))):
            return _factor(inner) * value
        case Apply("divide", (inner, Num(value))) if value:
            return _factor(inner) / value
    return 0.0


def _read(kernel: Kernel) -> Sequence[Linear]:
    """The maps of what a reduction reads."""
    assert isinstance(kernel.root, Reduction)
    return linear_indices(kernel.root.load.indices) or ()


def _is_read_as(load: Load, maps: Sequence[Linear], written: Sequence[Linear]) -> bool:
    """Whether a kernel that writes at `maps` loads each element where another one wrote that of the same place."""
    return linear_indices(load.indices) == maps and _renaming(maps, written) is not None


def _renaming(maps: Sequence[Linear], others: Sequence[Linear]) -> dict[Axis, Axis] | None:
    """By axis of some maps the one of others that goes over the same elements in the same way; None if any does not."""
    found: dict[Axis, Axis] = {}
    if len(maps) != len(others):
        return None
    for here, there in zip(map(_plain_terms, maps), map(_plain_terms, others), strict=True):
        if [here[0], *(step for step, _ in here[1])] != [there[0], *(step for step, _ in there[1])]:
            return None
        for (_, axis), (_, other) in zip(here[1], there[1], strict=True):
            if axis.extent != other.extent or found.setdefault(axis, other) is not other:
                return None
    return found if len(set(found.values())) == len(found) else None


def _plain_terms(part: Linear) -> tuple[int, list[tuple[int, Axis]]]:
    terms = [(step, axis) for axis, step in part.terms.items() if axis.extent > 1]
    return part.const, sorted(terms, key=lambda term: (term[0], term[1].extent))


def _plain(maps: Sequence[Linear]) -> list[tuple[int, dict[Axis, int]]]:
    return [(part.const, {axis: step for step, axis in _plain_terms(part)[1]}) for part in maps]


def _renamed(maps: Sequence[Linear], by: Mapping[Axis, Axis]) -> list[tuple[int, dict[Axis, int]]] | None:
    if any(axis not in by for part in maps for _, axis in _plain_terms(part)[1]):
        return None
    return [(const, {by[axis]: step for axis, step in terms.items()}) for const, terms in _plain(maps)]
