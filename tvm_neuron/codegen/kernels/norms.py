"""norm_of: the kernels of a norm, by what they compute: a layer's, an instance's, a group's, from any model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isclose, prod

from tvm_neuron.codegen.kernels.same_rows import plain, read_maps, renamed, renaming
from tvm_neuron.schedule.expr import Apply, Expr, Load, Num
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
    by_mean, by_spread = renaming(read_maps(mean), own), renaming(read_maps(spread), own)
    if here is None or by_mean is None or by_spread is None or linear_indices(x.indices) != own:
        return None
    rows = renamed(mean.out_maps, by_mean), renamed(spread.out_maps, by_spread)
    return norm if rows[0] == rows[1] == plain(here) else None


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


def _is_read_as(load: Load, maps: Sequence[Linear], written: Sequence[Linear]) -> bool:
    """Whether a kernel that writes at `maps` loads each element where another one wrote that of the same place."""
    return linear_indices(load.indices) == maps and renaming(maps, written) is not None
