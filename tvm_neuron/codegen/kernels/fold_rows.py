"""fold_rows: chooses which tensors of few channels have several rows on the partitions, see `row_folds`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

import numpy as np

from tvm_neuron.codegen.kernels.apply_folds import apply_folds
from tvm_neuron.codegen.kernels.folds import Fold, Room
from tvm_neuron.codegen.kernels.interlaced import apart, interlaced
from tvm_neuron.codegen.kernels.pack import packed_steps
from tvm_neuron.codegen.kernels.row_axes import COLUMNS, ROWS, Interlaced, is_store
from tvm_neuron.codegen.kernels.row_folds import possible_folds
from tvm_neuron.codegen.kernels.row_phases import by_phases
from tvm_neuron.codegen.kernels.widen_outputs import widen_outputs
from tvm_neuron.codegen.overlap.work import load_ps, work_of
from tvm_neuron.codegen.passes.move_cost import kernel_ps
from tvm_neuron.hw import Device
from tvm_neuron.schedule.expr import Num
from tvm_neuron.schedule.few_filled import where_filled
from tvm_neuron.schedule.kernel import Contraction, Kernel, Product
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import PARTITIONS
from tvm_neuron.schedule.uses import writers_of

_ROWS_ALONE = Room(ROWS, PARTITIONS, 4, False)
_ROWS_OF_SQUARES = Room(ROWS, PARTITIONS // 2, 2, True)
_CLEARLY = 0.95  # of the engines' time: for less it is not worth to make another program, which the clock compares
LOAD_SHARE = 0.5  # of the time that further weights take: memory lets some come while engines work


@dataclass(frozen=True)
class _Choice:
    """The kernels, and the folds to make of them.

    Engines are busy for `busy_ps` in all then, DRAM is for `all_ps` with weights, for `load_ps` with those that repeat.
    """

    kernels: list[Kernel]
    dims: dict[Tensor, int]  # of tensors that only these have
    folds: dict[Tensor, Fold]
    busy_ps: int
    load_ps: int
    all_ps: int

    @property
    def time_ps(self) -> float:
        """How long all take: engines wait for a share of what repeated weights take; for all if DRAM has no rest."""
        return self.busy_ps + (LOAD_SHARE if self.all_ps < self.busy_ps else 1) * self.load_ps


_TIME = attrgetter("time_ps")


def fold_rows(
    kernels: list[Kernel], partition_of: dict[Tensor, int], device: Device, takes_phases: bool = False
) -> tuple[list[Kernel], bool]:
    """The kernels with rows or squares folded, of images of so many rows as take the engines least time.

    Rows of large images first, then of smaller ones too, for a fold of both is often better than of one; then squares
    in place of the rows of images of one size after the other. With `takes_phases` folds may end within a convolution,
    see `by_phases`, and the second result tells whether some do; else whether there are any that may.
    """
    writers = writers_of(kernels)
    by_weights = {kernel: _by_weights(kernel, writers) for kernel in interlaced(kernels)}
    best, has_phases = _best([*by_weights.values()], partition_of, device, takes_phases)
    if not best.folds:
        return kernels, has_phases and not takes_phases
    partition_of |= best.dims
    found, dims = apply_folds(best.folds, best.kernels, partition_of)
    partition_of |= dims
    as_before = {changed: kernel for kernel, changed in by_weights.items()}
    found = apart(as_before.get(kernel, kernel) for kernel in found)
    read = {tensor for kernel in found for tensor in kernel.sources()}
    return [kernel for kernel in found if kernel.out.kind != "temp" or kernel.out in read], has_phases


def _by_weights(kernel: Kernel, writers: Mapping[Tensor, Sequence[Kernel]]) -> Kernel:
    """A sum over channels by weights, all of them what fills the tensor that it multiplies by; other kernels as is."""
    root = kernel.root
    if not isinstance(root, Product) or not root.is_sum or root.steps or root.bias is not None:
        return kernel
    ones, moving, depth = root.stationary, root.moving, Linear(0, {root.depth: 1})
    if ones.maps != (depth, Linear(0, {kernel.channel: 1})) or moving.maps[1:2] != (depth,):
        return kernel
    fills = writers.get(ones.tensor, [])
    is_whole = ones.tensor.shape == (moving.tensor.shape[1], kernel.channel.extent)
    if not is_whole or len(fills) != 1 or fills[0].root is not None or not isinstance(fills[0].expr, Num):
        return kernel
    weights = np.full(ones.tensor.shape, fills[0].expr.value, np.float32)
    maps = (moving.maps[0], Linear(0), *moving.maps[2:])
    return replace(kernel, root=Contraction(moving.tensor, maps, (), weights, False, root.dtype))


def _best(
    kernels: list[Kernel], partition_of: dict[Tensor, int], device: Device, takes_phases: bool
) -> tuple[_Choice, bool]:
    """The folds that take the engines least time, each tried after what was found before.

    And whether phases are among them, or where they are not to be taken, whether there are any.
    """
    rows = possible_folds(kernels, partition_of, _ROWS_ALONE)
    squares = possible_folds(kernels, partition_of, _ROWS_OF_SQUARES)
    squares = {tensor: fold for tensor, fold in squares.items() if _squares(tensor, fold) >= device.matmul_min_cycles}
    changing = {*rows, *squares}

    def choice(way: list[Kernel], dims: dict[Tensor, int], folds: dict[Tensor, Fold]) -> _Choice:
        bare = [each if changing.isdisjoint(each.tensors) else _without_values(each) for each in way]
        found, folded = apply_folds(folds, bare, {**partition_of, **dims}) if folds else (bare, {})
        found = apart(found)
        if takes_phases:  # what has no folds then has several rows at once, too
            found = widen_outputs(found, {**partition_of, **dims, **folded}, device)
        busy_ps, repeated_ps, all_ps = _times(found, device)
        if folds:  # of outputs, which are stored in shorter rows then
            before, after = {**partition_of, **dims}, {**partition_of, **dims, **folded}
            busy_ps += max(0, _stored_ps(found, after, device) - _stored_ps(way, before, device))
        return _Choice(way, dims, folds, busy_ps, repeated_ps, all_ps)

    def search(way: list[Kernel], dims: dict[Tensor, int]) -> _Choice:
        best = choice(way, dims, {}) if changing else _Choice(way, dims, {}, 0, 0, 0)
        for size in _sizes(rows):
            larger = {tensor: fold for tensor, fold in rows.items() if fold.rows >= size}
            best = min(best, choice(way, dims, larger), key=_TIME)
        for size in _sizes(squares):
            of_size = {tensor: fold for tensor, fold in squares.items() if fold.rows == size}
            best = min(best, choice(way, dims, best.folds | of_size), key=_TIME)
        return best

    usual = search(kernels, {})
    phases, dims = by_phases(kernels, rows, partition_of)
    has_phases = len(phases) > len(kernels)
    if not has_phases or not takes_phases:
        return usual, has_phases
    phased = search(phases, dims)
    return (phased, True) if phased.time_ps < _CLEARLY * usual.time_ps else (usual, False)


def _without_values(kernel: Kernel) -> Kernel:
    """The kernel with nothing of its weights but where there are any.

    Time depends on nothing else, and folds that are only tried would copy the weights of the whole network.
    """
    root = kernel.root
    if not isinstance(root, Contraction):
        return kernel
    there = where_filled(root.weights) if root.has_zeros else np.broadcast_to(np.True_, root.weights.shape)
    if isinstance(root, Interlaced):
        root = replace(root, phases=tuple(map(_without_values, root.phases)))
    return replace(kernel, root=replace(root, weights=there))


def _sizes(folds: Mapping[Tensor, Fold]) -> list[int]:
    """Of images, the largest first."""
    return sorted({fold.rows for fold in folds.values()}, reverse=True)


def _squares(tensor: Tensor, fold: Fold) -> int:
    """How many of 2 x 2 pixels the images have: as many columns stream through the array then."""
    return tensor.shape[0] * fold.rows * tensor.shape[COLUMNS] // 4


def _times(kernels: Sequence[Kernel], device: Device) -> tuple[int, int, int]:
    """How long engines are busy, each kernel's busiest one, and DRAM is with weights that repeat and with all."""
    busy = repeated = every = 0
    for kernel in kernels:
        work, root = work_of(kernel, device), kernel.root
        work["pe"] //= packed_steps(kernel, device)
        busy += max(work.values())
        if not isinstance(root, Contraction):
            continue
        load, depth = load_ps(kernel, device), root.weights.shape[0]
        if root.repeats > 1 and root.has_zeros:
            repeated += load
        elif root.has_zeros and root.is_diagonal:
            load //= depth  # it comes without the zeros
        rows = min(depth, device.partitions) * device.dma_descriptor_ns * 1000 // device.dma_engines
        every += max(load, rows)
    return busy, repeated, every


def _stored_ps(kernels: Sequence[Kernel], partition_of: Mapping[Tensor, int], device: Device) -> int:
    """How long transfers take outputs to their places from where these lie in SBUF."""
    stores = (replace(kernel, by_dma=True) for kernel in kernels if is_store(kernel))
    return sum(kernel_ps(kernel, partition_of, device) for kernel in stores)
