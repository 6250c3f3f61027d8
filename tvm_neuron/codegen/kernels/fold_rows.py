"""fold_rows: kernels on tensors of few channels that have several rows on the partitions, see `row_folds`."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace

from tvm_neuron.allocation.regions import box, overlaps, whole
from tvm_neuron.codegen.kernels.bring_in import border, fill
from tvm_neuron.codegen.kernels.channel_values import (
    Order,
    channel_values,
    folded_value,
    reading_parts,
    repeating,
)
from tvm_neuron.codegen.kernels.folds import Fold, Room
from tvm_neuron.codegen.kernels.pack import packed_steps
from tvm_neuron.codegen.kernels.rewrite_folded import fills_of_folded, rewrite_folded
from tvm_neuron.codegen.kernels.row_axes import COLUMNS, ROWS, is_fill
from tvm_neuron.codegen.kernels.row_folds import common_folds, possible_folds
from tvm_neuron.codegen.kernels.write_padding import write_padding
from tvm_neuron.codegen.overlap.work import load_ps, work_of
from tvm_neuron.hw import Device
from tvm_neuron.schedule.kernel import Contraction, Kernel, Reduction
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import PARTITIONS

_ROWS_ALONE = Room(ROWS, PARTITIONS, 4, False)
_ROWS_OF_SQUARES = Room(ROWS, PARTITIONS // 2, 2, True)
_COLUMNS_OF_SQUARES = Room(COLUMNS, PARTITIONS, 2, True)
_LOAD_SHARE = 0.5  # of the time that further weights take: memory lets some come while engines work
_LOAD_SHARE_OF_SQUARES = 0.5  # the same: later layers wait for few weights, since those of diagonals come without zeros


@dataclass(frozen=True)
class _Folded:
    """Kernels, the folds they were made by, and the partition dimension of each folded tensor.

    Engines are busy for `busy_ps` in all, and DRAM is for `load_ps` with weights that repeat.
    """

    folds: dict[Tensor, Fold]
    kernels: list[Kernel]
    partition_of: dict[Tensor, int]
    busy_ps: int
    load_ps: int

    def time_ps(self, load_share: float) -> float:
        """How long all take, where engines wait for DRAM during this share of the time that repeated weights take."""
        return self.busy_ps + load_share * self.load_ps


def fold_rows(kernels: list[Kernel], partition_of: dict[Tensor, int], device: Device) -> list[Kernel]:
    """The kernels with rows or squares folded, of images of so many rows as take the engines least time.

    Rows of large images first, then of smaller ones too, for a fold of both is often better than of one; at last
    squares in place of the rows of images of one size after the other, which may begin in the padding, too.
    """
    rows = possible_folds(kernels, partition_of, _ROWS_ALONE)
    squares = possible_folds(kernels, partition_of, _ROWS_OF_SQUARES)
    squares = {tensor: fold for tensor, fold in squares.items() if _squares(tensor, fold) >= device.matmul_min_cycles}
    best = _Folded({}, kernels, {}, _busy_ps(kernels, device) if rows else 0, 0)
    for size in _sizes(rows):
        folds = {tensor: fold for tensor, fold in rows.items() if fold.rows >= size}
        found = _folded_by(folds, kernels, partition_of, device)
        best = min(best, found, key=lambda folded: folded.time_ps(_LOAD_SHARE))
    for size in _sizes(squares):
        folds = best.folds | {tensor: fold for tensor, fold in squares.items() if fold.rows == size}
        found = _folded_by(folds, kernels, partition_of, device)
        best = min(best, found, key=lambda folded: folded.time_ps(_LOAD_SHARE_OF_SQUARES))
    for size in _sizes(squares):
        images = [tensor for tensor, fold in squares.items() if fold.rows == size]
        padded = _padding_written(kernels, images)
        new = {kernel.out: 1 for kernel in padded if kernel.out not in partition_of}
        possible = possible_folds(padded, partition_of | new, _ROWS_OF_SQUARES) if padded is not kernels else {}
        folds = best.folds | {tensor: fold for tensor, fold in possible.items() if tensor in images}
        found = _folded_by(folds, padded, partition_of | new, device) if possible else best
        found = replace(found, partition_of=found.partition_of | new)
        best = min(best, found, key=lambda folded: folded.time_ps(_LOAD_SHARE_OF_SQUARES))
    partition_of |= best.partition_of
    return best.kernels


def _padding_written(kernels: list[Kernel], images: Sequence[Tensor]) -> list[Kernel]:
    """The kernels, those that compute one of the images in the form that also writes its padding if they have it."""
    for image in images:
        kernels = write_padding(kernels, image) or kernels
    return kernels


def _sizes(folds: Mapping[Tensor, Fold]) -> list[int]:
    """Of images, the largest first."""
    return sorted({fold.rows for fold in folds.values()}, reverse=True)


def _squares(tensor: Tensor, fold: Fold) -> int:
    """How many of 2 x 2 pixels the images have: as many columns stream through the array then."""
    return tensor.shape[0] * fold.rows * tensor.shape[COLUMNS] // 4


def _folded_by(
    possible: dict[Tensor, Fold], kernels: list[Kernel], partition_of: Mapping[Tensor, int], device: Device
) -> _Folded:
    """The kernels on tensors folded so, and then along columns where partitions are kept free for these."""
    values = channel_values(kernels, partition_of)
    folds = common_folds(kernels, possible, values)
    found, folded = _with_folds(kernels, folds, values)
    halves = {folded[tensor] for tensor, fold in folds.items() if fold.is_of_squares}
    dims = dict.fromkeys(folded.values(), 1)
    if halves:
        values = channel_values(found, {**partition_of, **dims})
        columns = possible_folds(found, {**partition_of, **dims}, _COLUMNS_OF_SQUARES)
        folds = common_folds(found, {tensor: fold for tensor, fold in columns.items() if tensor in halves}, values)
        found, folded = _with_folds(found, folds, values)
        dims |= dict.fromkeys(folded.values(), 1)
    return _Folded(possible, found, dims, _busy_ps(found, device), _repeated_ps(found, device))


def _with_folds(
    kernels: list[Kernel], folds: Mapping[Tensor, Fold], values: Container[Tensor]
) -> tuple[list[Kernel], dict[Tensor, Tensor]]:
    """The kernels on folded tensors, and which of these takes the place of each."""
    folded = {tensor: _folded(tensor, fold) for tensor, fold in folds.items()}
    orders = _orders(kernels, folds, values)
    folded |= {tensor: folded_value(tensor, order) for tensor, order in orders.items()}
    found: list[Kernel] = []
    filled: set[Tensor] = set()
    for kernel in kernels:
        if kernel.out in folds and is_fill(kernel):
            if _is_inside(kernel, _interior(kernel.out, kernels)):
                found += fills_of_folded(kernel, folds[kernel.out], folded[kernel.out])
            elif kernel.out not in filled:
                filled.add(kernel.out)
                found += _fills(kernel, folds[kernel.out], folded[kernel.out], _interior(kernel.out, kernels))
        else:
            found.append(_on_values(rewrite_folded(kernel, folds, folded), orders, folded))
    return found, folded


def _orders(kernels: Sequence[Kernel], folds: Mapping[Tensor, Fold], values: Container[Tensor]) -> dict[Tensor, Order]:
    """The values of each channel that are there as often as the folded images beside them have rows in one."""
    found: dict[Tensor, Order] = {}
    for kernel in kernels:
        if isinstance(kernel.root, Reduction) and kernel.root.load.tensor in folds:
            found[kernel.out] = folds[kernel.root.load.tensor].order
        elif kernel.out in folds:
            loads = [load.tensor for load in kernel.operand_loads() if load.tensor in values]
            found |= dict.fromkeys(loads, folds[kernel.out].order)
    return found


def _on_values(kernel: Kernel, orders: Mapping[Tensor, Order], folded: Mapping[Tensor, Tensor]) -> Kernel:
    """A contraction that adds up parts of sums, or computes factors more than once."""
    root = kernel.root
    if isinstance(root, Contraction) and root.data in orders:
        kernel = reading_parts(kernel, orders[root.data], folded[root.data])
    if isinstance(root, Contraction) and kernel.out in orders:
        kernel = repeating(kernel, orders[kernel.out], folded[kernel.out])
    return kernel


def _busy_ps(kernels: Sequence[Kernel], device: Device) -> int:
    """Of all kernels, each as long as the engine that it keeps longest."""
    busy = 0
    for kernel in kernels:
        work = work_of(kernel, device)
        work["pe"] //= packed_steps(kernel, device)
        busy += max(work.values())
    return busy


def _repeated_ps(kernels: Sequence[Kernel], device: Device) -> int:
    """How long weights take to come from DRAM that repeat."""
    repeated = (k for k in kernels if isinstance(k.root, Contraction) and k.root.repeats > 1 and k.root.has_zeros)
    return sum(load_ps(kernel, device) for kernel in repeated)


def _folded(tensor: Tensor, fold: Fold) -> Tensor:
    shape = list(tensor.shape)
    below = shape[fold.along] - fold.first - fold.rows
    shape[1] *= fold.by
    shape[fold.along] = -(-fold.first // fold.by) + fold.rows // fold.by + -(-below // fold.by)
    return Tensor(f"{tensor.name}.folded", tuple(shape), tensor.dtype)


def _interior(tensor: Tensor, kernels: Sequence[Kernel]) -> Kernel:
    """A kernel that writes what is not padding."""
    return next(kernel for kernel in kernels if kernel.out is tensor and not is_fill(kernel))


def _is_inside(kernel: Kernel, interior: Kernel) -> bool:
    """Whether it fills what the other has written."""
    return overlaps(*(box(k.out_maps, whole(k)) for k in (kernel, interior)))


def _fills(kernel: Kernel, fold: Fold, folded: Tensor, interior: Kernel) -> list[Kernel]:
    """The padding around the rows and columns that others write."""
    spans = [part.span for part in interior.out_maps]
    top = fold.top
    inside = [(low, high + 1) for low, high in spans]
    inside[1], inside[fold.along] = (0, folded.shape[1]), (top, top + fold.rows // fold.by)
    return [fill(folded, kernel, 1, outside, kernel.expr) for outside in border(folded.shape, 1, inside)]
