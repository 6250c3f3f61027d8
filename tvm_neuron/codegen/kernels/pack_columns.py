"""pack_columns: a convolution of few channels reads several columns of its window at once, as further partitions.

64 channels use half of the PE array's 128 rows. With a copy of them beside, moved along a row, a window of three
columns takes two matmuls for each of its rows. Engines make the copies while the array works on something else, which
pays where the array is what a network waits for.

Where that leaves fewer matmuls, copies are moved down by rows of the window instead: of data with two rows in one on 64
partitions, three rows of a window lie in two. Such copies hold the rows above, which earlier tiles of rows have made.
"""

from collections.abc import Container, Mapping, Sequence

import numpy as np

from tvm_neuron.codegen.emit.corners import is_made
from tvm_neuron.codegen.kernels.bring_in import fill
from tvm_neuron.codegen.kernels.moved_copies import Window, copies_of, inside, on_copies, wide_data
from tvm_neuron.codegen.overlap.work import load_ps, work_of
from tvm_neuron.codegen.tiles.restrict import Rows, restrict
from tvm_neuron.hw import Device
from tvm_neuron.schedule.expr import Num
from tvm_neuron.schedule.kernel import Contraction, Kernel
from tvm_neuron.schedule.operations import PARTITION_START_STEP
from tvm_neuron.schedule.tensor import Tensor

_LEAST_FILLED = 0.25  # of weights that may be made in SBUF, and would have to come from DRAM if they lay otherwise
POOL_SHARE = 2  # times POOL's work, the PE array's at least: it also waits for what POOL does between its kernels


def pack_columns(kernels: list[Kernel], partition_of: dict[Tensor, int], device: Device) -> list[Kernel]:
    """The kernels with such contractions packed, each after the copies of its data.

    Where that saves the array twice the time that POOL takes for copies; or as many as leave the array busy for twice
    as long as POOL, and none where weights take longer to come than that.
    Where DMA brings the data, the array has hardly anything to do yet, of several images too: it has to save that time.
    """
    brought = {kernel.out for kernel in kernels if kernel.by_dma}
    busy = {kernel: work_of(kernel, device) for kernel in kernels}
    pe, pool = (sum(work[engine] for work in busy.values()) for engine in ("pe", "pool"))
    weights = sum(load_ps(kernel, device) for kernel in kernels)
    packed: dict[Kernel, list[Kernel]] = {}
    found: dict[Tensor, Rows] = {}
    ragged: dict[Tensor, int] = {}  # partitions of one copy, not all of which hold a channel
    for readers in _readers(kernels, partition_of, device, brought):
        first, window = readers[0]
        within = inside(window.root.data, kernels)
        if within is None:
            continue
        data = wide_data(window)
        before = copies_of(window, data, first, within)
        after = [on_copies(kernel, its, data) for kernel, its in readers]
        copying = sum(work_of(copy, device)["pool"] for copy in before)
        saved = sum(busy[kernel]["pe"] for kernel, _ in readers) - sum(work_of(part, device)["pe"] for part in after)
        is_hidden = window.root.data not in brought or copying <= saved
        is_gain = saved >= POOL_SHARE * copying or pe - saved >= max(POOL_SHARE * (pool + copying), weights)
        if is_hidden and is_gain:
            pe, pool = pe - saved, pool + copying
            packed |= {kernel: [part] for (kernel, _), part in zip(readers, after, strict=True)}
            packed[first] = [*before, *packed[first]]
            found[window.root.data] = Rows(data, 0, 0)
            partition_of[data] = window.part
            if window.rows > window.root.weights.shape[0]:
                ragged[data] = window.rows
    whole = [part for kernel in kernels for part in packed.get(kernel, [kernel])]
    return _filled([restrict(k, None, 0, 0, found) if _touches(k, found) else k for k in whole], ragged, partition_of)


def _touches(kernel: Kernel, tensors: Mapping[Tensor, Rows]) -> bool:
    return any(tensor in tensors for tensor in kernel.tensors)


def _readers(
    kernels: Sequence[Kernel], partition_of: Mapping[Tensor, int], device: Device, brought: Container[Tensor]
) -> list[list[tuple[Kernel, Window]]]:
    """The kernels with the same window over the same data, once these are complete.

    What DMA brings comes last: it was laid out on its way (see `pack`), so that copies gain least.
    """
    written = {kernel.out: step for step, kernel in enumerate(kernels)}
    found: dict[Tensor, list[tuple[Kernel, Window]]] = {}
    for step, kernel in enumerate(kernels):
        window = _window(kernel, partition_of, device, brought)
        if window is None or written.get(window.root.data, step) >= step:
            continue
        readers = found.setdefault(window.root.data, [])
        if not readers or readers[0][1].copied == window.copied:
            readers.append((kernel, window))
    return [found[data] for data in sorted(found, key=lambda data: data in brought)]


def _window(
    kernel: Kernel, partition_of: Mapping[Tensor, int], device: Device, brought: Container[Tensor]
) -> Window | None:
    """Where copies leave fewest matmuls; of rows not where tiles bring in again what they share with others."""
    root = kernel.root
    if not isinstance(root, Contraction) or root.data.kind != "temp" or root.data.is_spread:
        return None
    if is_made(root, device) and np.count_nonzero(root.weights) < _LEAST_FILLED * root.weights.size:
        return None
    part, depth = partition_of[root.data], root.weights.shape[0]
    if part == len(root.maps) - 1 or root.data.shape[part] != depth or root.maps[part].const:
        return None
    rows = 1
    while rows < max(depth, PARTITION_START_STEP):
        rows *= 2
    most = device.pe_rows // rows
    last = len(root.maps) - 1
    dims = (last,) if root.data in brought else (last, last - 1)
    found = [window for dim in dims if (window := _along(root, part, dim, rows, most)) is not None]
    found = [window for window in found if window.copies == found[0].copies]  # engines are slower than the array
    return min(found, key=lambda window: window.steps * root.weights.size // window.axis.extent, default=None)


def _along(root: Contraction, part: int, dim: int, rows: int, most: int) -> Window | None:
    """The window with up to `most` copies moved along a dimension; None if it has no use for them.

    Moved down, they hold all of the window's rows, or the last row of outputs would read others below the data.
    """
    axes = [axis for axis in root.steps if axis in root.maps[dim].terms]
    if dim in (0, part) or len(axes) != 1 or any(step < 0 for step in root.maps[dim].terms.values()) or most < 1:
        return None
    steps = -(-axes[0].extent // most)
    window = Window(root, part, dim, axes[0], rows, -(-axes[0].extent // steps), steps)
    is_whole = window.copies * steps == axes[0].extent
    return window if window.copies > 1 and (is_whole or not window.is_of_rows) else None


def _filled(kernels: list[Kernel], ragged: Mapping[Tensor, int], partition_of: Mapping[Tensor, int]) -> list[Kernel]:
    """The kernels; zeros on partitions without a channel are written before anything else of those tensors is."""
    found: list[Kernel] = []
    begun: set[Tensor] = set()
    for kernel in kernels:
        data = kernel.out
        if data in ragged and data not in begun:
            begun.add(data)
            part = partition_of[data]
            box = [(0, extent) for extent in data.shape]
            box[part] = (0, ragged[data])
            found.append(fill(data, kernel, part, box, Num(0.0)))
        found.append(kernel)
    return found
