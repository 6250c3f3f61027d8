"""pack_window: a convolution of few channels reads window rows and columns at once, as further partitions.

Of a stride of s rows, s rows beside one another come from DRAM once, on partitions of their own. All else is the same
data moved along a partition, which DMA copies from SBUF to SBUF in one descriptor for each partition: the rows of a
partition lie there without gaps, so that one move goes down whole rows and along columns alike.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tvm_neuron.codegen.kernels.bring_in import Source, bring_in, fill
from tvm_neuron.hw import Device
from tvm_neuron.isa import Affine, DmaCopy, DramTile, Tile
from tvm_neuron.isa.dtypes import size_bytes
from tvm_neuron.schedule.expr import Axis, Load, Num
from tvm_neuron.schedule.kernel import Contraction, Kernel
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.sim.clock import duration_ps

_DIMS = 4  # images, channels, rows, columns


@dataclass(frozen=True)
class _Window:
    """A window of whole steps over rows and columns; `row` and `column` are the axes of the output."""

    root: Contraction
    rows: Axis
    columns: Axis
    row: Axis
    column: Axis
    channels: int
    shifts: int = 1  # copies that are moved along the columns, `steps` columns apart

    @property
    def stride(self) -> int:
        """Rows from one output row to the next, of which no more than the window has are needed."""
        return min(self.root.maps[2].terms[self.row], self.rows.extent)

    @property
    def turns(self) -> int:
        """How often the window's rows hold a whole stride."""
        return -(-self.rows.extent // self.stride)

    @property
    def steps(self) -> int:
        """Columns of the window that the PE array takes one after the other."""
        return -(-self.columns.extent // self.shifts)

    @property
    def base(self) -> int:
        """Partitions of what comes from DRAM."""
        return self.channels * self.stride

    @property
    def depth(self) -> int:
        """Partitions in all."""
        return self.channels * self.rows.extent * self.shifts

    @property
    def pitch(self) -> int:
        """Elements from one row to the next: no move along the columns brings in what belongs to another row."""
        part = self.root.maps[3]
        read = part.const + part.terms[self.column] * (self.column.extent - 1) + self.steps * self.shifts
        return max(self.root.data.shape[3], read)


def pack_window(
    kernel: Kernel, root: Contraction, source: Source, partition_of: dict[Tensor, int], room: int, device: Device
) -> list[Kernel] | None:
    """The kernels that lay the data out, and the kernel on those; None where that can't be done.

    That includes images of more than `room` bytes of each partition: they run in tiles of rows, which can't be had of
    rows without gaps.
    """
    window = _window(root, partition_of[root.data])
    if window is None or window.depth > device.pe_rows:
        return None
    shifts = range(1, device.pe_rows // window.depth + 1)
    window = min((replace(window, shifts=n) for n in shifts), key=lambda found: _time_ps(found, kernel, device))
    image = (window.row.extent + window.turns - 1) * window.pitch
    if image * size_bytes(root.dtype) > room:
        return None
    packed = Tensor(f"{root.data.name}.packed", (root.data.shape[0], window.depth, image), root.data.dtype)
    brought = _base(window, source, packed, kernel)
    if brought is None:
        return None
    partition_of[packed] = 1
    return [*brought, *_copies(window, packed, kernel), replace(kernel, root=_new_root(window, packed))]


def _window(root: Contraction, partition_dim: int) -> _Window | None:
    if len(root.maps) != _DIMS or partition_dim != 1 or root.maps[1].const or len(root.steps) != 2:
        return None
    found: list[tuple[Axis, Axis]] = []
    for dim in (2, 3):
        terms = root.maps[dim].terms
        steps = [axis for axis in root.steps if terms.get(axis) == 1]
        others = [axis for axis in terms if axis not in root.steps]
        if len(steps) != 1 or len(others) != 1 or len(terms) != 2:
            return None
        found.append((steps[0], others[0]))
    (rows, row), (columns, column) = found
    return _Window(root, rows, columns, row, column, root.weights.shape[0])


def _time_ps(window: _Window, kernel: Kernel, device: Device) -> tuple[int, int]:
    """Of an image: the longer of the PE array's work and that of DMA; then the sum of both."""
    dtype, shape = window.root.dtype, window.root.data.shape
    moved = Tile("sbuf", dtype, Affine(), window.base, Affine(), ((1, window.row.extent * window.pitch),))
    dma = 0
    for copied in (*_turns(window), *[window.depth // window.shifts] * (window.shifts - 1)):
        part = replace(moved, partitions=copied)
        dma += DmaCopy(target=part, source=part, ring=0).cost(device).busy_cycles
    rows = shape[2] // window.stride
    there = ((shape[2] * shape[3], window.base), (window.stride * shape[3], rows), (1, shape[3]))
    here = Tile("sbuf", dtype, Affine(), window.base, Affine(), ((window.pitch, rows), (1, shape[3])))
    dma += DmaCopy(target=here, source=DramTile(0, "float32", Affine(), there), ring=0).cost(device).busy_cycles
    tiles = -(-kernel.channel.extent // device.pe_columns)
    pe = duration_ps(tiles * window.steps * window.row.extent * window.column.extent, device.pe_clock_hz)
    return max(pe, 1000 * dma), pe + 1000 * dma


def _base(window: _Window, source: Source, packed: Tensor, like: Kernel) -> list[Kernel] | None:
    """The rows of a stride from DRAM, and the border; what nothing reads, as the end of copies, is zero too."""
    part = window.root.maps[2]
    image = Tensor(packed.name, (packed.shape[0], window.base, packed.shape[2] // window.pitch, window.pitch), "")
    rows = [Linear(part.const + w, {window.row: part.terms[window.row]}) for w in range(window.stride)]
    filled = source if source.fill is not None else replace(source, fill=Num(0.0))
    found = bring_in(filled, image, like, 1, 2, rows)
    if found is None:
        return None
    end = window.row.extent * window.pitch - (window.shifts - 1) * window.steps
    rest = [(0, packed.shape[0]), (0, window.depth), (end, packed.shape[2])]
    ends = [fill(packed, like, 1, rest, Num(0.0))] if end < packed.shape[2] else []
    return [*ends, *(replace(k, out=packed, out_maps=_flat(k.out_maps, window.pitch)) for k in found)]


def _flat(maps: Sequence[Linear], pitch: int) -> tuple[Linear, ...]:
    return (*maps[:2], maps[2].scaled(pitch) + maps[3])


def _copies(window: _Window, packed: Tensor, like: Kernel) -> Iterator[Kernel]:
    """Further rows of the window, then its further columns, each from the partitions before them."""
    whole = window.row.extent * window.pitch
    for turn, channels in enumerate(_turns(window), 1):
        yield _copy(packed, like, channels, turn * window.base, turn * window.pitch, whole)
    depth = window.depth // window.shifts
    for shift in range(1, window.shifts):
        by = shift * window.steps
        yield _copy(packed, like, depth, shift * depth, by, whole - by)


def _turns(window: _Window) -> list[int]:
    """Of each further turn, the partitions that the window's rows take: the last may be less than a stride."""
    return [min(window.base, window.channels * window.rows.extent - t * window.base) for t in range(1, window.turns)]


def _copy(packed: Tensor, like: Kernel, channels: int, to: int, by: int, count: int) -> Kernel:
    """Channel c of the packed data to channel `to + c`, moved back by so many elements."""
    image, channel, element = Axis("n", packed.shape[0]), Axis("c", channels), Axis("x", count)
    first = Linear(0, {image: 1} if image.extent > 1 else {})
    out = (first, Linear(to, {channel: 1}), Linear(0, {element: 1}))
    read = (first, Linear(0, {channel: 1}), Linear(by, {element: 1}))
    free = tuple(axis for axis in (image, element) if axis.extent > 1)
    load = Load(packed, tuple(part.expr() for part in read))
    return Kernel(like.origins[:1], packed, out, channel, free, load, by_dma=True)


def _new_root(window: _Window, packed: Tensor) -> Contraction:
    """The contraction over the packed data: its channel is (shift, row, channel)."""
    root = window.root
    weights = np.moveaxis(
        root.weights, (1 + root.steps.index(window.rows), 1 + root.steps.index(window.columns)), (1, 2)
    )
    channels, rows, columns, outputs = weights.shape
    shifts, steps = window.shifts, window.steps
    padded = np.zeros((channels, rows, shifts * steps, outputs), weights.dtype)
    padded[:, :, :columns] = weights
    split = padded.reshape(channels, rows, shifts, steps, outputs).transpose(2, 1, 0, 3, 4)
    step = Axis(window.columns.name, steps, True)
    column = root.maps[3]
    along = Linear(column.const, {window.column: column.terms[window.column], **({step: 1} if steps > 1 else {})})
    maps = (root.maps[0], Linear(0), Linear(0, {window.row: window.pitch}) + along)
    new = split.reshape(window.depth, *((steps,) if steps > 1 else ()), -1)
    return replace(root, data=packed, maps=maps, steps=(step,) if steps > 1 else (), weights=new)
