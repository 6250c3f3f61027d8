"""fold_rows: chooses which tensors of few channels have several rows on the partitions, see `row_folds`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tvm_neuron.codegen.kernels.apply_folds import apply_folds
from tvm_neuron.codegen.kernels.folds import Fold, Room
from tvm_neuron.codegen.kernels.pack import packed_steps
from tvm_neuron.codegen.kernels.row_axes import COLUMNS, ROWS
from tvm_neuron.codegen.kernels.row_folds import possible_folds
from tvm_neuron.codegen.kernels.write_padding import write_padding
from tvm_neuron.codegen.overlap.work import load_ps, work_of
from tvm_neuron.hw import Device
from tvm_neuron.schedule.kernel import Contraction, Kernel
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import PARTITIONS

_ROWS_ALONE = Room(ROWS, PARTITIONS, 4, False)
_ROWS_OF_SQUARES = Room(ROWS, PARTITIONS // 2, 2, True)
_LOAD_SHARE = 0.5  # of the time that further weights take: memory lets some come while engines work
_LOAD_SHARE_OF_SQUARES = 0.5  # the same: later layers wait for few weights, since those of diagonals come without zeros


@dataclass(frozen=True)
class _Choice:
    """The folds to make once kernels also write the padding of some images.

    Engines are busy for `busy_ps` in all then, and DRAM is for `load_ps` with weights that repeat.
    """

    folds: dict[Tensor, Fold]
    padded: tuple[Tensor, ...]
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
    best = _best([_without_values(kernel) for kernel in kernels], partition_of, device)
    if not best.folds:
        return kernels
    padded = _padding_written(kernels, best.padded)
    partition_of |= _dims_of_new(padded, partition_of)
    found, dims = apply_folds(best.folds, padded, partition_of)
    partition_of |= dims
    return found


def _best(kernels: list[Kernel], partition_of: Mapping[Tensor, int], device: Device) -> _Choice:
    """The folds that take the engines least time, each tried after what was found before."""

    def tried(folds: dict[Tensor, Fold], padded: Sequence[Tensor] = ()) -> _Choice:
        written = _padding_written(kernels, padded)
        found, _ = apply_folds(folds, written, {**partition_of, **_dims_of_new(written, partition_of)})
        return _Choice(folds, tuple(padded), _busy_ps(found, device), _repeated_ps(found, device))

    rows = possible_folds(kernels, partition_of, _ROWS_ALONE)
    squares = possible_folds(kernels, partition_of, _ROWS_OF_SQUARES)
    squares = {tensor: fold for tensor, fold in squares.items() if _squares(tensor, fold) >= device.matmul_min_cycles}
    best = _Choice({}, (), _busy_ps(kernels, device) if rows else 0, 0)
    for size in _sizes(rows):
        found = tried({tensor: fold for tensor, fold in rows.items() if fold.rows >= size})
        best = min(best, found, key=lambda choice: choice.time_ps(_LOAD_SHARE))
    for size in _sizes(squares):
        found = tried(best.folds | {tensor: fold for tensor, fold in squares.items() if fold.rows == size})
        best = min(best, found, key=lambda choice: choice.time_ps(_LOAD_SHARE_OF_SQUARES))
    for size in _sizes(squares):
        images = [tensor for tensor, fold in squares.items() if fold.rows == size]
        padded = _padding_written(kernels, images)
        if padded is not kernels:
            possible = possible_folds(padded, {**partition_of, **_dims_of_new(padded, partition_of)}, _ROWS_OF_SQUARES)
            found = tried(best.folds | {t: fold for t, fold in possible.items() if t in images}, images)
            best = min(best, found, key=lambda choice: choice.time_ps(_LOAD_SHARE_OF_SQUARES))
    return best


def _without_values(kernel: Kernel) -> Kernel:
    """The kernel with nothing of its weights but where there are any.

    Time depends on nothing else, and folds that are only tried would copy the weights of the whole network.
    """
    root = kernel.root
    if not isinstance(root, Contraction):
        return kernel
    there = root.weights != 0 if root.has_zeros else np.broadcast_to(np.True_, root.weights.shape)
    return replace(kernel, root=replace(root, weights=there))


def _dims_of_new(kernels: Sequence[Kernel], partition_of: Mapping[Tensor, int]) -> dict[Tensor, int]:
    """The partition dimension of the tensors that are not laid out yet: images in a form with more padding."""
    return {kernel.out: 1 for kernel in kernels if kernel.out not in partition_of}


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
