"""fold_windows: large depthwise windows work on several rows at once, between neighbours that do not.

A window of 7 x 7 takes 49 matmuls for each row of 128 channels. Of 32 channels with 4 rows each on the partitions, 21
give 4 rows of output, for 10 rows of input are 3 rows of 4: a third of the matmuls. Where `fold_rows` folds no tensor,
since a neighbour reads or writes it otherwise, the PE array lays the data out so by products with ones, which is exact,
and brings the sums back in the same way; together they take 6 matmuls for the row.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.codegen.kernels.bring_in import fill
from tvm_neuron.codegen.kernels.channels import has_plain_constants
from tvm_neuron.codegen.kernels.fold_rows import LOAD_SHARE
from tvm_neuron.codegen.kernels.row_axes import COLUMNS, ROWS, Window, window_of
from tvm_neuron.codegen.kernels.row_folds import MOST_GROUPED
from tvm_neuron.codegen.overlap.work import load_ps, work_of
from tvm_neuron.codegen.precision import Precisions
from tvm_neuron.hw import Device
from tvm_neuron.isa.dtypes import size_bytes
from tvm_neuron.schedule.expr import Axis, Num, replace_axes
from tvm_neuron.schedule.few_filled import few_filled
from tvm_neuron.schedule.kernel import ROOT, Contraction, Kernel
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import PARTITIONS
from tvm_neuron.sim.clock import clock_hz, duration_ps

_ROWS_AT_ONCE = (2, 4)
_CLEARLY = 0.75  # of the price: that kernels wait for each other is not in it


def fold_windows(
    kernels: list[Kernel], partition_of: dict[Tensor, int], precisions: Precisions, device: Device
) -> list[Kernel]:
    """The kernels, such windows by as many rows at once as take the engines least time."""
    found: list[Kernel] = []
    for kernel in kernels:
        root = kernel.root
        window = _window(kernel, partition_of)
        if window is None or not isinstance(root, Contraction) or not _may_be_rounded(kernel, root, precisions):
            found.append(kernel)
            continue
        most = _CLEARLY * _time_ps(kernel, device)
        ways = [_Folded(kernel, root, window, by) for by in _ROWS_AT_ONCE if by * kernel.channel.extent <= MOST_GROUPED]
        made = [way.kernels() for way in ways if way.least_ps(device) < most]
        best = min(made, key=lambda kernels: _total_ps(kernels, device), default=[kernel])
        best = best if _total_ps(best, device) < most else [kernel]
        if len(best) > 1:
            partition_of |= dict.fromkeys((each.out for each in best[:-1] if each.out is not kernel.out), 1)
        found += best
    return found


def _may_be_rounded(kernel: Kernel, root: Contraction, precisions: Precisions) -> bool:
    """Whether sums may be stored as the PE array reads them, which it does once more."""
    return precisions.of(kernel.origins[0].name).dtype_of(kernel.out.dtype) == root.dtype


def _total_ps(kernels: Sequence[Kernel], device: Device) -> float:
    return sum(_time_ps(kernel, device) for kernel in kernels)


def _time_ps(kernel: Kernel, device: Device) -> float:
    """How long a kernel keeps its busiest engine, and a share of what its weights keep DRAM."""
    root, load = kernel.root, load_ps(kernel, device)
    if isinstance(root, Contraction) and root.repeats == 1 and root.has_zeros and root.is_diagonal:
        load //= root.weights.shape[0]  # it comes without the zeros
    return max(work_of(kernel, device).values()) + LOAD_SHARE * load


def _window(kernel: Kernel, partition_of: dict[Tensor, int]) -> Window | None:
    """That of a depthwise convolution by rows and columns of all channels of its data; None for anything else."""
    root = kernel.root
    if not isinstance(root, Contraction) or len(root.steps) != 2 or not root.has_zeros or partition_of[root.data] != 1:
        return None
    window, channels = window_of(root), kernel.out_maps[partition_of[kernel.out]]
    if window is None or window.step is None or channels.terms != {kernel.channel: 1} or root.side or root.scale:
        return None
    images, _, _, columns = root.maps
    own = [axis for axis in columns.terms if axis not in root.steps]
    is_whole = images.const == 0 and prod(axis.extent for axis in images.terms) == root.data.shape[0]
    is_whole &= {*kernel.free} == {*images.terms, window.row, *own} and len(own) == 1 and len(images.terms) < 2
    is_whole &= window.row.extent > max(_ROWS_AT_ONCE) and len(root.weights) == kernel.channel.extent
    is_plain = root.repeats == 1 and has_plain_constants(kernel, window.row)
    return window if is_whole and is_plain and root.is_depthwise else None


@dataclass(frozen=True)
class _Folded:
    """A depthwise convolution by `by` rows at once: a folded row has rows by * y to by * y + by - 1, piece by piece."""

    kernel: Kernel
    root: Contraction
    window: Window
    by: int

    def kernels(self) -> list[Kernel]:
        """What lays its data out, sums it up, and brings the sums back."""
        images, channels, _, columns = self.root.data.shape
        rows = -(-self.window.row.extent // self.by)  # of the sums, some of which nobody reads
        read = self.window.stride * (self.by * rows - 1) + self._reach
        shape = (images, channels * self.by, -(-read // self.by), columns)
        laid_out = Tensor(f"{self.root.data.name}.by_rows", shape, self.root.data.dtype)
        shape = (images, channels * self.by, rows, self._column.extent)
        sums = Tensor(f"{self.kernel.out.name}.by_rows", shape, self.kernel.out.dtype)
        back = [self._brought_back(sums, row) for row in range(min(self.by, self.window.row.extent))]
        return [*self._laid_out(laid_out), self._summed(laid_out, sums), *back]

    def least_ps(self, device: Device) -> float:
        """No more than the price, without any weights: what the array multiplies, and a share of what DRAM brings."""
        channels, positions = self.kernel.channel.extent, prod(axis.extent for axis in self.kernel.free)
        pieces = -(-channels // (PARTITIONS // self.by))
        rows = 1 + (self.window.stride * (self.by - 1) + self._reach - 1) // self.by
        steps = rows * prod(axis.extent for axis in self.root.steps if axis is not self.window.step)
        there_and_back = 2 * self.by  # matmuls for each folded row
        columns = pieces * positions // self.by * (steps + there_and_back)
        piece = self.by * min(channels, PARTITIONS // self.by)  # partitions of it
        weights = self.by * channels * piece * steps * size_bytes(self.root.dtype)
        load = duration_ps(weights, device.dram_bytes_per_second)
        return duration_ps(columns, clock_hz(device, "pe")) + LOAD_SHARE * load

    @property
    def _reach(self) -> int:
        """How many rows of the data are from the first to the last that one row of sums is of."""
        assert self.window.step is not None
        return self.window.dilation * (self.window.step.extent - 1) + 1

    @property
    def _column(self) -> Axis:
        return next(axis for axis in self.root.maps[COLUMNS].terms if axis not in self.root.steps)

    @property
    def _image(self) -> Axis | None:
        return next(iter(self.root.maps[0].terms), None)

    def _places(self) -> NDArray[np.intp]:
        """[rows of one, channels]: the channel of the folded tensor."""
        channels, piece = self.kernel.channel.extent, PARTITIONS // self.by
        found = np.empty((self.by, channels), np.intp)
        for start in range(0, channels, piece):
            size = min(piece, channels - start)
            for row in range(self.by):
                found[row, start : start + size] = start * self.by + row * size + np.arange(size)
        return found

    def _laid_out(self, folded: Tensor) -> Iterator[Kernel]:
        """The rows that are read, in as many steps as are one; what is behind the last of them is 0."""
        there = self.window.stride * (self.window.row.extent - 1) + self._reach
        whole, rest = divmod(there, self.by)
        if whole:
            yield self._moved(folded, 0, whole, self.by)
        if rest:
            yield self._moved(folded, whole, 1, rest)
        if (end := whole + (rest > 0)) < folded.shape[ROWS]:
            box = [(0, extent) for extent in folded.shape]
            box[ROWS] = (end, folded.shape[ROWS])
            yield fill(folded, self.kernel, 1, box, Num(0.0))

    def _moved(self, folded: Tensor, first: int, rows: int, steps: int) -> Kernel:
        """Of `rows` folded rows from `first` on, so many rows each."""
        places, root = self._places(), self.root
        channels = np.arange(places.shape[1])
        weights = few_filled((len(channels), steps, folded.shape[1]), root.weights.dtype)
        for at in range(steps):
            weights[channels, at, places[at]] = 1
        image, channel, row, column = map(Axis, "ncyx", (folded.shape[0], folded.shape[1], rows, folded.shape[COLUMNS]))
        step = Axis("row", steps, True)
        read = Linear(self.window.const + self.by * first) + _along(row).scaled(self.by) + _along(step)
        maps = (_along(image), Linear(0), read, _along(column))
        moved = Contraction(root.data, maps, (step,), weights, True, root.dtype)
        out = (_along(image), Linear(0, {channel: 1}), Linear(first) + _along(row), _along(column))
        free = tuple(axis for axis in (image, row, column) if axis.extent > 1)
        return Kernel(self.kernel.origins[:1], folded, out, channel, free, ROOT, moved)

    def _summed(self, laid_out: Tensor, sums: Tensor) -> Kernel:
        """Row q of one sums at step k what lies in row stride * q + dilation * k, perhaps of one further on."""
        root, window, places = self.root, self.window, self._places()
        assert window.step is not None
        at = root.steps.index(window.step)
        channels = np.arange(places.shape[1])
        taps = np.moveaxis(root.weights[channels, :, :, channels], 1 + at, 0)  # [steps along rows, channels, others]
        reads = {
            (q, k): divmod(window.stride * q + window.dilation * k, self.by)
            for q in range(self.by)
            for k in range(window.step.extent)
        }
        step = Axis(window.step.name, 1 + max(further for further, _ in reads.values()), True)
        weights = few_filled((sums.shape[1], step.extent, taps.shape[2], sums.shape[1]), root.weights.dtype)
        for (q, k), (further, r) in reads.items():
            weights[places[r], further, :, places[q]] = taps[k]
        channel, row = Axis("c", sums.shape[1]), Axis(window.row.name, sums.shape[ROWS])
        summed = replace(
            root,
            data=laid_out,
            maps=(root.maps[0], Linear(0), Linear(0, {row: window.stride, step: 1}), root.maps[COLUMNS]),
            steps=tuple(step if axis is window.step else axis for axis in root.steps),
            weights=weights if at == 0 else np.moveaxis(weights, 1, 2),
            repeats=self.by,
        )
        out = (_along(self._image), Linear(0, {channel: 1}), _along(row), _along(self._column))
        free = tuple(row if axis is window.row else axis for axis in self.kernel.free)
        return Kernel(self.kernel.origins[:1], sums, out, channel, free, ROOT, summed)

    def _brought_back(self, sums: Tensor, q: int) -> Kernel:
        """Row q of each, and what the kernel makes of it."""
        kernel, places, old = self.kernel, self._places(), self.window.row
        row = Axis(old.name, -(-(old.extent - q) // self.by))
        place = Linear(q, {row: self.by})
        weights = few_filled((sums.shape[1], places.shape[1]), self.root.weights.dtype)
        weights[places[q], np.arange(places.shape[1])] = 1
        maps = (_along(self._image), Linear(0), _along(row), _along(self._column))
        return replace(
            kernel,
            out_maps=tuple(part.replaced(old, place) for part in kernel.out_maps),
            free=tuple(row if axis is old else axis for axis in kernel.free),
            expr=replace_axes(kernel.expr, {old: place.expr()}),
            root=Contraction(sums, maps, (), weights, True, self.root.dtype),
        )


def _along(axis: Axis | None) -> Linear:
    return Linear(0, {axis: 1} if axis is not None and axis.extent > 1 else {})
