"""cut_to_fit: kernels of which even the smallest strip is too large for SBUF, in parts.

Strips cut free axes. What these leave too large is cut here: channels that take many chunks of partitions, and rows of
reductions, of which parts are reduced side by side, then what they leave; and constants along rows, which come whole.
"""

from collections.abc import Iterator
from dataclasses import replace

from tvm_neuron.allocation.memory_plan import strip_bytes
from tvm_neuron.codegen.emit.positions import positional, positions_bytes
from tvm_neuron.codegen.kernels.channels import channels_of, has_plain_constants
from tvm_neuron.codegen.stage import Stage
from tvm_neuron.codegen.tiles.restrict import restrict
from tvm_neuron.codegen.zones import divide
from tvm_neuron.hw import Device
from tvm_neuron.schedule.expr import Axis, Expr, Index, Load, Num, rewrite
from tvm_neuron.schedule.graph import linear_indices
from tvm_neuron.schedule.kernel import ROOT, Kernel, Reduction
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.operations import PARTITION_START_STEP
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import PARTITIONS

_SLOTS = 2  # strips that are in SBUF at once: one comes while the kernel works on the other
_CONSTANTS_SHARE = 4  # 1 / this of SBUF at most for a kernel's constants along its rows


def cut_to_fit(stage: Stage, device: Device) -> Stage:
    """The stage, such kernels in parts."""
    most = device.sbuf_bytes_per_partition // _CONSTANTS_SHARE
    stage = replace(stage, kernels=[part for kernel in stage.kernels for part in _with_fewer_constants(kernel, most)])
    room = divide(stage.kernels, stage.partition_of, device, 0, stage.tuning.weights_bytes(device)).tensors_bytes
    cutter = _Cutter(stage, device, room // _SLOTS, room // stage.tuning.strip_share)
    kernels = [part for kernel in stage.kernels for part in cutter.parts(kernel)]
    return replace(stage, kernels=kernels, partition_of=cutter.partition_of, dtypes=cutter.dtypes)


class _Cutter:
    """Cuts kernels whose strips take more than `most` bytes of a partition, to about `wanted` bytes if that is had."""

    def __init__(self, stage: Stage, device: Device, most: int, wanted: int) -> None:
        self.partition_of, self.dtypes = dict(stage.partition_of), dict(stage.dtypes)
        self.device, self.most, self.wanted = device, most, wanted

    def parts(self, kernel: Kernel) -> Iterator[Kernel]:
        """The kernel in parts of which each fits, as far as it can be cut."""
        size = 0 if kernel.by_dma else strip_bytes(kernel, self.partition_of, self.dtypes, self.most, self.device)
        extent = kernel.channel.extent
        chunks = -(-extent // PARTITIONS)
        if size <= self.most:
            yield kernel
        elif chunks > 1 and has_plain_constants(kernel):
            step = max(1, chunks * self.wanted // size) * PARTITIONS
            for low in range(0, extent, step):
                yield from self.parts(channels_of(kernel, low, min(step, extent - low)))
        elif isinstance(kernel.root, Reduction) and not kernel.whole:
            yield from self._in_two_stages(kernel, kernel.root, size)
        else:
            yield kernel

    def _in_two_stages(self, kernel: Kernel, root: Reduction, size: int) -> Iterator[Kernel]:
        """Reductions of parts of the longest axis, and one of what they leave."""
        long = max(root.axes, key=lambda axis: axis.extent)
        step = max(2, long.extent * self.wanted // size)
        if step >= long.extent:
            yield kernel
            return
        full, rest = divmod(long.extent, step)
        shape = (kernel.channel.extent, full + bool(rest), *(axis.extent for axis in kernel.free))
        parts = Tensor(f"{kernel.out.name}.parts", shape, "float32")
        self.partition_of[parts], self.dtypes[parts] = 0, "float32"
        for first, count, length in ((0, full, step), (full, 1, rest)):
            if length:
                own = Axis("part", count), Axis(long.name, length, is_reduction=True)
                yield from self.parts(_partial(kernel, root, long, own, step, parts, first))
        side = Axis("part", shape[1], is_reduction=True)
        load = Load(parts, tuple(map(Index, (kernel.channel, side, *kernel.free))))
        yield from self.parts(replace(kernel, root=Reduction(load, root.combine, (side,))))


def _with_fewer_constants(kernel: Kernel, most: int) -> Iterator[Kernel]:
    """The kernel in parts along the longest free axis of its constants, which take at most so many bytes in each.

    They begin where engines may: the axis may lie on the partitions of what the kernel transposes.
    """
    size = 0 if kernel.by_dma else positions_bytes(kernel)
    found = [index for load in positional(kernel) for index in load.indices] if size > most else []
    axes = [i.axis for i in found if isinstance(i, Index) and i.axis in kernel.free and i.axis not in kernel.whole]
    if not axes:
        yield kernel
        return
    axis = max(axes, key=lambda found: found.extent)
    step = max(1, axis.extent * most // size)
    step -= step % next(start for start in (PARTITIONS, PARTITION_START_STEP, 1) if step >= start)
    for low in range(0, axis.extent, step):
        high = min(low + step, axis.extent)
        yield restrict(_with_slices(kernel, axis, low, high), axis, low, high, {})


def _with_slices(kernel: Kernel, axis: Axis, low: int, high: int) -> Kernel:
    """The kernel with only that part of its constants along an axis."""
    sliced: dict[tuple[Tensor, int], Tensor] = {}

    def leaf(part: Num | Index | Load) -> Expr:
        if not isinstance(part, Load) or part.tensor.value is None or Index(axis) not in part.indices:
            return part
        dim, tensor = part.indices.index(Index(axis)), part.tensor
        if (tensor, dim) not in sliced:
            value = part.tensor.value[(slice(None),) * dim + (slice(low, high),)]
            sliced[tensor, dim] = Tensor(tensor.name, value.shape, tensor.dtype, value=value)
        within = Linear(-low, {axis: 1}).expr()
        return Load(sliced[tensor, dim], tuple(within if d == dim else each for d, each in enumerate(part.indices)))

    return replace(kernel, expr=rewrite(kernel.expr, leaf))


def _partial(
    kernel: Kernel, root: Reduction, long: Axis, own: tuple[Axis, Axis], step: int, parts: Tensor, first: int
) -> Kernel:
    """The reduction of parts of `long`, `step` apart, from the `first` on, over `own`: parts, and what is in one."""
    side, inner = own
    where = Linear(first * step, {axis: n for axis, n in ((side, step), (inner, 1)) if axis.extent > 1})
    maps = linear_indices(root.load.indices) or ()
    load = Load(root.load.tensor, tuple(found.replaced(long, where).expr() for found in maps))
    axes = [inner if axis is long else axis for axis in root.axes]
    whole = Reduction(load, root.combine, tuple(axis for axis in axes if axis.extent > 1))
    free = (*((side,) if side.extent > 1 else ()), *kernel.free)
    place = Linear(first, {side: 1} if side.extent > 1 else {})
    out_maps = Linear(0, {kernel.channel: 1}), place, *(Linear(0, {axis: 1}) for axis in kernel.free)
    is_copy = not whole.axes
    return Kernel(
        kernel.origins, parts, out_maps, kernel.channel, free, load if is_copy else ROOT, None if is_copy else whole
    )
