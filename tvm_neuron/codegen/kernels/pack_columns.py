"""pack_columns: a convolution of few channels reads several columns of its window at once, as further partitions.

64 channels use half of the PE array's 128 rows. With a copy of them beside, moved along a row, a window of three
columns takes two matmuls for each of its rows. Engines make the copies while the array works on something else, which
pays where the array is what a network waits for.
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tvm_neuron.codegen.kernels.bring_in import fill
from tvm_neuron.codegen.overlap.work import load_ps, work_of
from tvm_neuron.codegen.tiles.restrict import Rows, restrict
from tvm_neuron.hw import Device
from tvm_neuron.schedule.expr import Axis, Load, Num
from tvm_neuron.schedule.kernel import Contraction, Kernel
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.operations import PARTITION_START_STEP
from tvm_neuron.schedule.tensor import Tensor

LEAST_FILLED = 0.25  # of the weights; of sparser ones the PE array skips whole blocks, or they are made in SBUF
POOL_SHARE = 2  # times POOL's work, the PE array's at least: it also waits for what POOL does between its kernels


@dataclass(frozen=True)
class _Window:
    """`copies` of the data, each moved by `steps` columns of the window, which has so many steps left then."""

    root: Contraction
    part: int  # the dimension on the partitions
    column: Axis  # the window's axis along the last dimension
    rows: int  # partitions from one copy to the next
    copies: int
    steps: int

    @property
    def shift(self) -> int:
        """Elements by which each copy is moved."""
        return self.steps * self.root.maps[-1].terms[self.column]

    @property
    def read(self) -> int:
        """Elements of a row that the steps of each copy reach."""
        along = self.root.maps[-1]
        return along.span[1] + 1 - along.terms[self.column] * (self.column.extent - self.steps)

    @property
    def copied(self) -> tuple[int, ...]:
        """Equal where the same copies serve."""
        return self.rows, self.copies, self.shift, self.read


def pack_columns(kernels: list[Kernel], partition_of: dict[Tensor, int], device: Device) -> list[Kernel]:
    """The kernels with such contractions packed, each after the copies of its data.

    As many as leave the PE array busy for twice as long as POOL, and none where weights take longer to come than that.
    Where DMA brings the data of a single image, the array has nothing else to do meanwhile: it has to save that time.
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
        data = _wide(window)
        before = _copies(window, data, first)
        after = [_packed(kernel, its, data) for kernel, its in readers]
        copying = sum(work_of(copy, device)["pool"] for copy in before)
        saved = sum(busy[kernel]["pe"] for kernel, _ in readers) - sum(work_of(part, device)["pe"] for part in after)
        is_hidden = window.root.data not in brought or window.root.data.shape[0] > 1 or copying <= saved
        if is_hidden and pe - saved >= max(POOL_SHARE * (pool + copying), weights):
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
) -> list[list[tuple[Kernel, _Window]]]:
    """The kernels with the same window over the same data, once these are complete.

    What DMA brings comes last: it was laid out on its way (see `pack`), so that copies gain least.
    """
    written = {kernel.out: step for step, kernel in enumerate(kernels)}
    found: dict[Tensor, list[tuple[Kernel, _Window]]] = {}
    for step, kernel in enumerate(kernels):
        window = _window(kernel, partition_of, device)
        if window is None or written.get(window.root.data, step) >= step:
            continue
        readers = found.setdefault(window.root.data, [])
        if not readers or readers[0][1].copied == window.copied:
            readers.append((kernel, window))
    return [found[data] for data in sorted(found, key=lambda data: data in brought)]


def _window(kernel: Kernel, partition_of: Mapping[Tensor, int], device: Device) -> _Window | None:
    root = kernel.root
    if not isinstance(root, Contraction) or root.data.kind != "temp" or root.data.is_spread:
        return None
    if root.has_zeros and np.count_nonzero(root.weights) < LEAST_FILLED * root.weights.size:
        return None
    part, depth = partition_of[root.data], root.weights.shape[0]
    columns = [axis for axis in root.steps if axis in root.maps[-1].terms]
    if any(step < 0 for step in root.maps[-1].terms.values()):
        return None
    if part == len(root.maps) - 1 or root.data.shape[part] != depth or root.maps[part].const or len(columns) != 1:
        return None
    rows = 1
    while rows < max(depth, PARTITION_START_STEP):
        rows *= 2
    steps = -(-columns[0].extent // (device.pe_rows // rows)) if rows < device.pe_rows else columns[0].extent
    if steps == columns[0].extent:
        return None
    return _Window(root, part, columns[0], rows, -(-columns[0].extent // steps), steps)


def _wide(window: _Window) -> Tensor:
    """The data with its copies."""
    shape = list(window.root.data.shape)
    shape[window.part] = window.rows * window.copies
    return Tensor(f"{window.root.data.name}.columns", tuple(shape), window.root.data.dtype)


def _copies(window: _Window, data: Tensor, like: Kernel) -> list[Kernel]:
    """Each from the data themselves, and zeros behind a row's end: weights of zero meet some, but NaN stays."""
    part, width = window.part, window.root.data.shape[-1]
    found = []
    for number in range(1, window.copies):
        by, first = window.shift * number, window.rows * number
        extents = list(data.shape)
        extents[part], extents[-1] = window.rows, min(window.read, width - by)
        axes = [Axis(f"d{d}", extent) for d, extent in enumerate(extents)]
        maps = [Linear(0, {axis: 1} if axis.extent > 1 else {}) for axis in axes]
        out, source = list(maps), list(maps)
        out[part], source[-1] = maps[part] + Linear(first), maps[-1] + Linear(by)
        free = tuple(axis for d, axis in enumerate(axes) if d != part and axis.extent > 1)
        load = Load(data, tuple(index.expr() for index in source))
        found.append(Kernel(like.origins[:1], data, tuple(out), axes[part], free, load))
        if extents[-1] < width:
            box = [(0, extent) for extent in data.shape]
            box[part], box[-1] = (first, first + window.rows), (extents[-1], width)
            found.append(fill(data, like, part, box, Num(0.0)))
    return found


def _packed(kernel: Kernel, window: _Window, data: Tensor) -> Kernel:
    """The kernel on the wide data: its channel is (copy, channel)."""
    root, column = window.root, window.column
    weights = np.moveaxis(root.weights, 1 + root.steps.index(column), 1)
    depth, extent, *others = weights.shape
    padded = np.zeros((window.rows, window.copies * window.steps, *others), weights.dtype)
    padded[:depth, :extent] = weights
    split = padded.reshape(window.rows, window.copies, window.steps, *others).swapaxes(0, 1)
    wide = split.reshape(window.rows * window.copies, window.steps, *others)
    step = Axis(column.name, window.steps, True)
    places = {axis: {step: by} if axis is column else {axis: by} for axis, by in root.maps[-1].terms.items()}
    along = Linear(root.maps[-1].const, {axis: by for terms in places.values() for axis, by in terms.items()})
    steps = (step, *(axis for axis in root.steps if axis is not column))
    if window.steps == 1:
        wide, steps = wide[:, 0], steps[1:]
        along = Linear(along.const, {axis: by for axis, by in along.terms.items() if axis is not step})
    return replace(kernel, root=replace(root, data=data, maps=(*root.maps[:-1], along), steps=steps, weights=wide))


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
