"""Emitter: what every kernel family needs to become instructions: storages, staging of DRAM tensors, transfers."""

from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.allocation.layouts import dram_strides
from tvm_neuron.allocation.memory_plan import MemoryPlan
from tvm_neuron.allocation.regions import Box
from tvm_neuron.allocation.storage import InDram, OnChip, Span, Storage
from tvm_neuron.codegen.emit.builder import Builder
from tvm_neuron.codegen.emit.squeeze import Squeeze
from tvm_neuron.errors import CompileError
from tvm_neuron.hw import Device
from tvm_neuron.isa import Affine, DmaCopy, DramTile, Tile
from tvm_neuron.isa.dtypes import DTYPES, device_dtype, size_bytes
from tvm_neuron.program.program import walk
from tvm_neuron.schedule.expr import Axis
from tvm_neuron.schedule.graph import linear_indices
from tvm_neuron.schedule.kernel import Kernel, Reduction
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.partitions import starts, stepping
from tvm_neuron.schedule.sums import Axes
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import PARTITIONS, Region, Segment, runs
from tvm_neuron.sim.clock import clock_hz, duration_ps

MAX_COPY_FREE_AXES = 3
TRANSFER_PARTS = 4
MANY_STARTS = 50  # of a transfer, 65 us: weights for a ring take 139 us and more on inf1, about 31 us on inf2
LONG_ROW_BYTES = 2048  # a DMA does well from here on
# Of those ready at once the first goes first.
LOAD_QUEUE, STORE_QUEUE, MOVE_QUEUE, WEIGHTS_QUEUE, TABLE_QUEUE = range(5)


@dataclass
class Emitter:
    """`dram` gives the device memory of each tensor that is not resident, `keeps` how many bytes of weights stay.

    `images` are the tensors of the program's table in which others cross the border as SBUF has them.
    """

    builder: Builder
    plan: MemoryPlan
    device: Device
    dram: dict[Tensor, InDram]
    keeps: Mapping[Kernel, int] = field(default_factory=dict)
    first: int | None = None  # the first operator of which weights are on their way
    has_others: bool = False  # whether weights of another one are, too
    images: Mapping[Tensor, int] = field(default_factory=dict)
    uses: Mapping[int, Sequence[int]] = field(default_factory=dict)  # steps that multiply by weights, by their identity
    sums: Mapping[Kernel, tuple[Kernel, Axes]] = field(default_factory=dict)  # see `sums_on_the_way`
    kept: set[Kernel] = field(default_factory=set)  # of these, those whose sums the kernel before has kept
    _arriving: set[Tensor] = field(default_factory=set)
    _staged: dict[Tensor, OnChip] = field(default_factory=dict)
    chunks_apart: bool = False  # one instruction for several chunks of partitions has to be clearly less work
    joined_ps: int = 0  # for which those that do keep their engines
    positions: dict[Tensor, OnChip] = field(default_factory=dict)  # constants of the current kernel, see `positions`
    in_psum: Mapping[Tensor, OnChip] = field(default_factory=dict)  # see `stay_in_psum`
    moving: dict[Tensor, OnChip] = field(default_factory=dict)  # weights that move along rows
    bias: tuple[OnChip, Tile] | None = None  # the parts of the current kernel's bias, and ones

    @contextmanager
    def joining(self) -> Iterator[None]:
        """What engines do inside covers several chunks of partitions at a time."""
        begin = len(self.builder.body)
        yield
        for counts, instruction in walk(tuple(self.builder.body[begin:])):
            cycles = prod(counts) * instruction.cost(self.device).busy_cycles
            self.joined_ps += duration_ps(cycles, clock_hz(self.device, instruction.engine))

    def queue(self, usual: int) -> int:
        """The queue of a transfer into SBUF. Those before the first weights share theirs, which come in order.

        A transfer that has to wait for anything would queue behind all weights that the ring has room for. Where these
        take long, all for the first operator share their queue, so that weights of others wait for them.
        """
        is_first = self.first == self.builder.origin and not self.has_others
        is_early = self.first is None or (is_first and self._is_ring_slow())
        return WEIGHTS_QUEUE if is_early else usual

    def move_queue(self, kernel: Kernel) -> int:
        """The queue of a move: what comes of a tensor that began to come before the first weights stays among them.

        If it waits for anything, then for what a part of it that came before did, too.
        """
        queue = self.queue(MOVE_QUEUE)
        waits = any(tensor.kind != "input" and tensor not in self._arriving for tensor in kernel.sources())
        if queue == WEIGHTS_QUEUE:
            self._arriving |= {kernel.out, *kernel.sources()}
        return WEIGHTS_QUEUE if kernel.out in self._arriving and not waits else queue

    def _is_ring_slow(self) -> bool:
        """Whether a ring full of weights takes many times longer to come than a transfer takes to start."""
        device = self.device
        ring_bytes = self.builder.weights.capacity * device.partitions
        return ring_bytes * 10**9 > MANY_STARTS * device.dma_start_ns * device.dram_bytes_per_second

    def times_used(self, weights: NDArray[Any]) -> int:
        """How many kernels multiply by them."""
        return len(self.uses.get(id(weights), (0,)))

    def last_use(self, weights: NDArray[Any]) -> int:
        """The step of the last kernel that does; 0 where only the current one is known to."""
        return self.uses.get(id(weights), (0,))[-1]

    def begin_weights(self) -> None:
        """From here on, weights of the current operator are on their way."""
        if self.first is None:
            self.first = self.builder.origin
        self.has_others |= self.first != self.builder.origin

    def bring_rows(self, name: str, rows: NDArray[Any], dtype: str, at: int, queue: int) -> None:
        """Constants [partitions, elements], a row to byte `at` of each partition."""
        count, elems = rows.shape
        source = DramTile(self.builder.add_weight(name, rows, dtype), dtype, Affine(), ((elems, count), (1, elems)))
        target = Tile("sbuf", dtype, Affine(), count, Affine(at), ((1, elems),))
        self.builder.emit(DmaCopy(target=target, source=source, ring=queue))

    def storage(self, tensor: Tensor) -> Storage:
        """Where the tensor can be reached now: staged, resident, or in DRAM; constants that are moved as weights."""
        if tensor in self._staged:
            return self._staged[tensor]
        if tensor in self.in_psum:
            return self.in_psum[tensor]
        if tensor in self.moving:
            return self.moving[tensor]
        if tensor.value is not None and tensor not in self.dram:
            dtype = device_dtype(tensor.dtype)
            if tensor.dtype != dtype and not _fits(tensor.value):
                raise CompileError(f"constant '{tensor.name}' holds integers of more than 32 bits, which no engine has")
            index = self.builder.add_weight(tensor.name, tensor.value.astype(DTYPES[dtype]), dtype)
            self.dram[tensor] = InDram(index, dtype, dram_strides(tensor.shape, range(len(tensor.shape))))
            return self.dram[tensor]
        return self.dram[tensor] if tensor in self.plan.in_dram else self.plan.resident(tensor)

    def channels(self, kernel: Kernel) -> int:
        """How many channels of the kernel to write: where all chunks of its output are one in SBUF, those of one."""
        is_whole = kernel.out in self.plan.in_dram
        return kernel.channel.extent if is_whole else kernel.channels

    def is_staged(self, kernel: Kernel) -> bool:
        """Whether the kernel works on a tensor in DRAM."""
        return any(tensor in self.plan.in_dram for tensor in (kernel.out, *kernel.sources()))

    @contextmanager
    def staging(self, kernel: Kernel, region: Region, slot: int) -> Iterator[None]:
        """Brings the parts of DRAM tensors that `region` reads into SBUF, and stores what it wrote at the end."""
        boxes = self.plan.boxes(kernel, region)
        for tensor, part in boxes.items():
            self._staged[tensor] = self.plan.staged(kernel, tensor, slot, part)
        for tensor in boxes:
            if tensor is not kernel.out or tensor in kernel.sources():
                self._load(tensor, boxes[tensor])
        yield
        if kernel.out in boxes:
            self._store(kernel, region)
        self._staged.clear()

    def brought(self, kernel: Kernel, tensor: Tensor) -> OnChip:
        """A tensor that a kernel needs in SBUF as a whole: where it is resident, or brought there now."""
        if tensor not in self.plan.in_dram:
            return self.plan.resident(tensor)
        part = (0,) * len(tensor.shape), tensor.shape
        self._staged[tensor] = self.plan.staged(kernel, tensor, 0, part)
        self._load(tensor, part)
        return self._staged.pop(tensor)

    def _load(self, tensor: Tensor, part: Box) -> None:
        """Brings a box of a DRAM tensor to where it is staged."""
        origin, shape = part
        axes = [Axis(f"d{d}", extent) for d, extent in enumerate(shape)]
        maps = [Linear(o, {axis: 1} if axis.extent > 1 else {}) for o, axis in zip(origin, axes, strict=True)]
        dim = self.plan.partition_of[tensor]
        free = {axis: (0, axis.extent) for d, axis in enumerate(axes) if d != dim}
        for run in runs(shape[dim], [0], any_start=True):
            self.copy(self.dram[tensor], maps, self._staged[tensor], maps, axes[dim], free, run, self.queue(LOAD_QUEUE))

    def transfer(self, tensor: Tensor, is_load: bool) -> None:
        """Brings a resident tensor in from its DRAM, or out to it, in parts: work on one needn't wait for all."""
        axes = [Axis(f"d{d}", extent) for d, extent in enumerate(tensor.shape)]
        maps = [Linear(0, {axis: 1} if axis.extent > 1 else {}) for axis in axes]
        dim = self.plan.partition_of[tensor]
        free = {axis: (0, axis.extent) for d, axis in enumerate(axes) if d != dim}
        sides = (self.dram[tensor], self.plan.resident(tensor))
        source, target = sides if is_load else sides[::-1]
        queue = self.queue(LOAD_QUEUE) if is_load else STORE_QUEUE
        for part in _parts(free, size_bytes(self.dram[tensor].dtype)):
            for run in runs(tensor.shape[dim], [0], any_start=True):
                self.copy(source, maps, target, maps, axes[dim], part, run, queue)

    def _store(self, kernel: Kernel, region: Region) -> None:
        """Stores what the kernel wrote in the region, and nothing that may lie between.

        A pattern's partitions follow each other, so that of axes which step partitions each value is stored alone.
        """
        low, high = region.get(kernel.channel, (0, kernel.channel.extent))
        chip, dram, maps = self._staged[kernel.out], self.dram[kernel.out], kernel.out_maps
        part = maps[self.plan.partition_of[kernel.out]]
        steps = {axis: step for axis, step in stepping(part, kernel.channel).items() if axis in kernel.free}
        for values in product(*(range(*region[axis]) for axis in steps)):
            free = {axis: region[axis] for axis in kernel.free}
            free |= {axis: (value, value + 1) for axis, value in zip(steps, values, strict=True)}
            moved = sum(step * value for step, value in zip(steps.values(), values, strict=True))
            first = (part.const + moved) % PARTITIONS if steps else 0
            for start, size, count in runs(high - low, [first], any_start=True):
                self.copy(chip, maps, dram, maps, kernel.channel, free, (low + start, size, count), STORE_QUEUE)

    def copy(
        self, source: Storage, source_maps: Sequence[Linear], target: Storage, target_maps: Sequence[Linear],
        channel: Axis, free: Region, run: Segment, queue: int,
    ) -> None:  # fmt: skip
        """DMA of a run of channels over a region of the free axes; axes that no pattern has room for take one each.

        Axes read backwards are loops, since a pattern only rises. In device memory elements go in rows, if they may.
        """
        start, size, count = run
        falling = [axis for axis in free if any(part.terms.get(axis, 0) < 0 for part in source_maps)]
        rising = [axis for axis in free if axis not in falling]
        for storage, maps in ((source, source_maps), (target, target_maps)):
            rising = storage.by_rows(maps, rising) if isinstance(storage, InDram) else rising
        outer = rising[: max(0, len(rising) - MAX_COPY_FREE_AXES)]
        inner = rising[len(outer) :]
        for values in product(*(range(*free[axis]) for axis in outer)):
            with ExitStack() as loops:
                spans = {channel: Span(start, size, loops.enter_context(self.builder.loop(count)), PARTITIONS)}
                for axis in falling:
                    low, high = free[axis]
                    spans[axis] = Span(low, 1, loops.enter_context(self.builder.loop(high - low)), 1, high - low)
                spans |= {axis: Span(value, 1) for axis, value in zip(outer, values, strict=True)}
                spans |= {axis: Span(free[axis][0], free[axis][1] - free[axis][0]) for axis in inner}
                sides = target.tile(target_maps, channel, inner, spans), source.tile(source_maps, channel, inner, spans)
                shape_of = Squeeze(sides, leading=1)
                into, out_of = (squeezed(side, shape_of) for side in sides)
                self.builder.emit(DmaCopy(target=into, source=out_of, ring=queue))


def _parts(free: Region, item_bytes: int) -> list[Region]:
    """A region in up to `TRANSFER_PARTS` parts along its first axis, if the rows of each part are long."""
    outer = next((axis for axis in free if axis.extent > 1), None)
    if outer is None:
        return [free]
    row_bytes = item_bytes * prod(axis.extent for axis in free)
    step = -(-outer.extent // max(1, min(TRANSFER_PARTS, row_bytes // LONG_ROW_BYTES)))
    return [{**free, outer: (low, min(low + step, outer.extent))} for low in range(0, outer.extent, step)]


def partition_firsts(kernel: Kernel, partition_of: Mapping[Tensor, int], staged: Container[Tensor]) -> list[int]:
    """The absolute partition of channel 0 of all that the kernel addresses by channel.

    What is staged starts at 0, but for a tensor that the kernel reads and writes: all its partitions are there then.
    """
    places = [(kernel.out, kernel.out_maps)]
    places += [(load.tensor, linear_indices(load.indices) or ()) for load in kernel.operand_loads()]
    if isinstance(kernel.root, Reduction):
        places += [(load.tensor, linear_indices(load.indices) or ()) for load in kernel.root.loads]
    found, whole = [0], {kernel.out} & {*kernel.sources()}
    for tensor, maps in places:
        part = maps[partition_of[tensor]] if maps else Linear()
        if part.terms:
            first = 0 if tensor in staged and tensor not in whole else part.const
            found += [first, *starts(Linear(first, part.terms), kernel.channel)]
    return list(dict.fromkeys(found))


def squeezed(side: Tile | DramTile, shape_of: Squeeze) -> Tile | DramTile:
    """The pattern in the common shape; the first dimension in DRAM, that of the channels, stays."""
    if isinstance(side, Tile):
        return shape_of(side)
    return DramTile(side.tensor, side.dtype, side.offset, (side.dims[0], *shape_of.dims(side.dims[1:])))


def _fits(value: NDArray[Any]) -> bool:
    limits = np.iinfo(np.int32)
    return bool(value.size == 0 or (value.min() >= limits.min and value.max() <= limits.max))
