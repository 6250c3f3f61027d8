"""corners: a stationary tile that is a diagonal of blocks as several smaller ones, without the zeros between these.

A depthwise convolution's tile is [128, 128] for 128 numbers. As two tiles of [64, 64] it takes half the memory and the
DRAM's time, and the array's time twice: worth it where an image has few positions, since the array then waits for DRAM.
"""

from collections.abc import Sequence
from math import prod

from tvm_neuron.hw import Device
from tvm_neuron.isa.dtypes import size_bytes
from tvm_neuron.isa.limits import partition_start_step
from tvm_neuron.schedule.kernel import Contraction, Kernel
from tvm_neuron.schedule.tiling import PARTITIONS, Segment
from tvm_neuron.sim.clock import clock_hz, duration_ps

POOL_SHARE = 0.5  # of its time for making tiles, for it also works for what leaves the array
_LEAST_COLUMNS = 32  # a result starts at a multiple of 32 partitions
Corner = tuple[Segment, int]  # the summed channels, and the first column that depends on them


def is_made(root: Contraction, device: Device) -> bool:
    """Whether POOL may make its tiles: not where zeros come from DRAM as soon, nor for rows computed together."""
    full = duration_ps(PARTITIONS * size_bytes(root.dtype), device.dram_bytes_per_second)
    is_soon = duration_ps(1, clock_hz(device, "pool")) < POOL_SHARE * full
    return root.has_zeros and root.repeats == 1 and is_soon


def corners(kernel: Kernel, run: Segment, data_first: int, device: Device) -> Sequence[Corner] | None:
    """The corners of the tile of one run of output channels that take the least time; None where that is the whole.

    All have the same number of columns, and none meets the partitions of another. What may be made on the core is
    whole.
    """
    root = kernel.root
    assert isinstance(root, Contraction)
    if is_made(root, device):
        return None
    size = run[1]
    counts = [count for count in (4, 2) if size % count == 0 and _can_lie_apart(size // count)]
    whole = _time_ps(kernel, root, size, 1, device)
    times = {count: time for count in counts if (time := _time_ps(kernel, root, size, count, device)) < whole}
    for count in sorted(times, key=lambda count: times[count]):
        found = _cut(root, run, size // count, data_first)
        if found is not None:
            return found
    return None


def _can_lie_apart(columns: int) -> bool:
    """Whether the results of so many columns may start behind one another on the partitions."""
    return columns >= _LEAST_COLUMNS and columns % partition_start_step(columns) == 0


def _time_ps(kernel: Kernel, root: Contraction, size: int, count: int, device: Device) -> int:
    """What a step takes: the longer of the array's time and the DRAM's."""
    positions, columns = prod(axis.extent for axis in kernel.free), size // count
    least = min(device.matmul_min_cycles, columns)
    rest = positions % device.moving_max_elems
    cycles = count * (positions - rest + (max(least, rest) if rest else 0))
    tile_bytes = size * columns * size_bytes(root.dtype)
    return max(duration_ps(cycles, clock_hz(device, "pe")), duration_ps(tile_bytes, device.dram_bytes_per_second))


def _cut(root: Contraction, run: Segment, columns: int, data_first: int) -> list[Corner] | None:
    """Corners of so many columns; None where their rows would not lie apart from each other."""
    found: list[Corner] = []
    start, size, _ = run
    free = 0  # the first partition behind the corners so far
    for low in range(0, size, columns):
        rows = root.rows_met(start + low, start + low + columns)
        if not rows.size:
            return None
        first = int(rows[0]) - (data_first + int(rows[0])) % _LEAST_COLUMNS
        count = int(rows[-1]) + 1 - first
        at = (data_first + first) % PARTITIONS
        if first < 0 or at < free or at + count > PARTITIONS or at % partition_start_step(count):
            return None
        found.append(((first, count, 1), low))
        free = at + count
    return found
