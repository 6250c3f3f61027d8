"""Emitter: what every kernel family needs to become instructions: storages, staging of DRAM tensors, transfers."""

from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from tvm_neuron.allocation.storage import PARTITIONS, InDram, OnChip, Span, Spans, Storage
from tvm_neuron.codegen.builder import Builder
from tvm_neuron.codegen.memory_plan import MemoryPlan
from tvm_neuron.codegen.tiling import Region, Squeeze, runs
from tvm_neuron.hw import Device
from tvm_neuron.isa import DmaCopy, DramTile, Tile
from tvm_neuron.schedule.expr import Axis
from tvm_neuron.schedule.graph import Tensor, linear_indices
from tvm_neuron.schedule.kernel import Kernel, Reduction
from tvm_neuron.schedule.linear import Linear

WEIGHTS_QUEUE, LOAD_QUEUE, STORE_QUEUE, MOVE_QUEUE = 0, 1, 2, 3


@dataclass
class Emitter:
    """`dram` gives the device memory of each tensor that is not resident."""

    builder: Builder
    plan: MemoryPlan
    device: Device
    dram: dict[Tensor, InDram]
    matmul_dtype: str = "bfloat16"
    _staged: dict[Tensor, OnChip] = field(default_factory=dict)
    positions: dict[Tensor, OnChip] = field(default_factory=dict)  # constants of the current kernel, see `positions`

    def storage(self, tensor: Tensor) -> Storage:
        """Where the tensor can be reached now: staged, resident, or in DRAM."""
        if tensor in self._staged:
            return self._staged[tensor]
        return self.dram[tensor] if tensor in self.plan.in_dram else self.plan.resident(tensor)

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
            if tensor is not kernel.out:
                self._transfer(tensor, boxes[tensor], to_chip=True)
        yield
        if kernel.out in boxes:
            self._transfer(kernel.out, boxes[kernel.out], to_chip=False)
        self._staged.clear()

    def _transfer(self, tensor: Tensor, part: tuple[tuple[int, ...], tuple[int, ...]], to_chip: bool) -> None:
        origin, shape = part
        axes = [Axis(f"d{d}", extent) for d, extent in enumerate(shape)]
        maps = [Linear(o, {axis: 1} if axis.extent > 1 else {}) for o, axis in zip(origin, axes, strict=True)]
        dim = self.plan.partition_of[tensor]
        chip, dram = self._staged[tensor], self.dram[tensor]
        free = [axis for d, axis in enumerate(axes) if d != dim]
        source, target = (dram, chip) if to_chip else (chip, dram)
        queue = LOAD_QUEUE if to_chip else STORE_QUEUE
        for run in runs(shape[dim], [0], any_start=True) if shape else []:
            self.copy(source, maps, target, maps, axes[dim], free, run, queue)

    def copy(
        self, source: Storage, source_maps: Sequence[Linear], target: Storage, target_maps: Sequence[Linear],
        channel: Axis, free: Sequence[Axis], run: tuple[int, int, int], queue: int,
    ) -> None:  # fmt: skip
        """One DMA for each repetition of a run of channels, over the whole of the free axes."""
        start, size, count = run
        with self.builder.loop(count) as depth:
            spans: Spans = {channel: Span(start, size, depth, PARTITIONS), **{a: Span(0, a.extent) for a in free}}
            sides = [
                target.tile(target_maps, channel, free, spans), source.tile(source_maps, channel, free, spans)
            ]  # fmt: skip
            shape_of = Squeeze(sides, leading=1)
            into, out_of = (_squeezed(side, shape_of) for side in sides)
            self.builder.emit(DmaCopy(target=into, source=out_of, ring=queue))


def partition_firsts(kernel: Kernel, partition_of: Mapping[Tensor, int], staged: Container[Tensor]) -> list[int]:
    """The absolute partition of channel 0 of all that the kernel addresses by channel; what is staged starts at 0."""
    places = [(kernel.out, kernel.out_maps)]
    places += [(load.tensor, linear_indices(load.indices) or ()) for load in kernel.operand_loads()]
    if isinstance(kernel.root, Reduction):
        places.append((kernel.root.load.tensor, linear_indices(kernel.root.load.indices) or ()))
    found = [0]
    for tensor, maps in places:
        part = maps[partition_of[tensor]] if maps else Linear()
        if part.terms and tensor not in staged:
            found.append(part.const)
    return list(dict.fromkeys(found))


def _squeezed(side: Tile | DramTile, shape_of: Squeeze) -> Tile | DramTile:
    if isinstance(side, Tile):
        return shape_of(side)
    return DramTile(side.tensor, side.dtype, side.offset, (side.dims[0], *shape_of.dims(side.dims[1:])))
