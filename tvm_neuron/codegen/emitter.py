"""Emitter: what every kernel family needs to become instructions: storages, staging of DRAM tensors, and its last step."""

from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from tvm_neuron.allocation.layouts import aligned
from tvm_neuron.allocation.storage import PARTITIONS, InDram, OnChip, Span, Spans, Storage
from tvm_neuron.codegen.arithmetic import Arithmetic, Operand, count_temporaries
from tvm_neuron.codegen.builder import Builder, Loops, Scratch
from tvm_neuron.codegen.memory_plan import MemoryPlan
from tvm_neuron.codegen.tiling import Region, Squeeze, contiguous, runs
from tvm_neuron.hw import Device
from tvm_neuron.isa import Affine, DmaCopy, DramTile, Tile
from tvm_neuron.isa.tile import Dims
from tvm_neuron.schedule.expr import Axis, Expr, Index, Load, loads
from tvm_neuron.schedule.graph import Tensor, linear_indices
from tvm_neuron.schedule.kernel import ACCUMULATOR, ROOT, Kernel, Reduction
from tvm_neuron.schedule.linear import Linear, linear

LOAD_QUEUE, STORE_QUEUE, MOVE_QUEUE = 1, 2, 3


@dataclass
class Emitter:
    """`dram` gives the device memory of each tensor that is not resident."""

    builder: Builder
    plan: MemoryPlan
    device: Device
    dram: dict[Tensor, InDram]
    matmul_dtype: str = "bfloat16"
    _staged: dict[Tensor, OnChip] = field(default_factory=dict)
    _positions: dict[Tensor, OnChip] = field(default_factory=dict)

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

    def load_positions(self, kernel: Kernel) -> None:
        """Loads constants that change along free axes, the same in every partition unless they follow the channel."""
        self._positions.clear()
        for load in loads(kernel.expr):
            tensor = load.tensor
            if tensor is ACCUMULATOR or tensor.value is None or tensor in self._positions or _is_vector(load, kernel):
                continue
            follows = load.indices and load.indices[0] == Index(kernel.channel)
            free = tensor.value.shape[1:] if follows else tensor.value.shape
            chunks = -(-kernel.channel.extent // PARTITIONS) if follows else 1
            elems = int(np.prod(free, dtype=np.int64))
            at = self.builder.weights.take(aligned(chunks * elems * 4))
            strides = tuple(step for step, _ in contiguous(free))
            self._positions[tensor] = OnChip(
                "float32", 0, at, (0,) * (1 + len(free)), (0, *strides), elems if follows else 0
            )
            index = self.builder.add_weight(f"{kernel.origins[0].name}.positions", tensor.value, "float32")
            for chunk in range(chunks):
                rows = min(PARTITIONS, kernel.channel.extent - chunk * PARTITIONS) if follows else PARTITIONS
                step = elems if follows else 0
                self.builder.emit(
                    DmaCopy(
                        target=Tile("sbuf", "float32", Affine(), rows, Affine(at + chunk * elems * 4), ((1, elems),)),
                        source=DramTile(index, "float32", Affine(chunk * PARTITIONS * step), ((step, rows), (1, elems))),
                        ring=LOAD_QUEUE,
                    )
                )

    def tiles(self, kernel: Kernel, spans: Spans) -> "TileEnd":
        """The last step of one tile of the kernel: its output, its operands, and the arithmetic between."""
        return TileEnd(self, kernel, spans)

    def operand(self, load: Load, kernel: Kernel, spans: Spans) -> Operand:
        """The tile of a load from a tensor or from constants."""
        if load.tensor.value is not None and _is_vector(load, kernel):
            channel = spans[kernel.channel]
            values = load.tensor.value
            return self.builder.vector(values, channel.start, channel.size, channel.count, channel.depth)
        maps = tuple(linear(index) for index in load.indices)
        storage: Storage
        if load.tensor.value is not None:
            storage = self._positions[load.tensor]
            if not maps or load.indices[0] != Index(kernel.channel):
                maps = (Linear(0, {kernel.channel: 1}), *maps)
        else:
            storage = self.storage(load.tensor)
        tile = storage.tile(maps, kernel.channel, kernel.free, spans)
        assert isinstance(tile, Tile), f"{load.tensor} was not brought into SBUF"
        return tile


def partition_firsts(kernel: Kernel, partition_of: Mapping[Tensor, int], staged: Container[Tensor]) -> list[int]:
    """The absolute partition of channel 0 of everything that the kernel addresses by channel; what is staged starts at 0."""
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


def _is_vector(load: Load, kernel: Kernel) -> bool:
    return load.indices == (Index(kernel.channel),)


def _squeezed(side: Tile | DramTile, shape_of: Squeeze) -> Tile | DramTile:
    if isinstance(side, Tile):
        return shape_of(side)
    return DramTile(side.tensor, side.dtype, side.offset, (side.dims[0], *shape_of.dims(side.dims[1:])))


class TileEnd:
    """One tile's way out: from its root's value (in PSUM, say) through the kernel's expression to its output."""

    def __init__(self, emitter: Emitter, kernel: Kernel, spans: Spans) -> None:
        self.emitter, self.kernel, self.spans = emitter, kernel, spans
        out = emitter.storage(kernel.out).tile(kernel.out_maps, kernel.channel, kernel.free, spans)
        assert isinstance(out, Tile), f"{kernel.out} was not given a place in SBUF"
        self.out = out
        self.operands: dict[Load, Operand] = {}
        for load in loads(kernel.expr):
            if load is not ROOT:
                self.operands[load] = emitter.operand(load, kernel, spans)
        self.patterns = [self.out, *(t for t in self.operands.values() if isinstance(t, Tile) and self._is_whole(t))]

    def _is_whole(self, tile: Tile) -> bool:
        return len(tile.dims) == len(self.kernel.free) and any(step for step, _ in tile.dims)

    def finish(self, shape_of: Squeeze, root: Tile | None, loops: Loops) -> None:
        """Emits the arithmetic; `root` is where the value of the kernel's root lies."""
        partitions = self.spans[self.kernel.channel].size
        counts = [self.spans[axis].size for axis in self.kernel.free]
        dims: Dims = shape_of.dims(contiguous(counts))
        elems = int(np.prod(counts, dtype=np.int64))
        slots = max(1, count_temporaries(self.kernel))
        scratch = Scratch(self.emitter.builder.scratch, aligned(4 * elems), slots, loops)

        def resolve(load: Load) -> Operand:
            if load is ROOT:
                assert root is not None
                return root
            found = self.operands[load]
            if isinstance(found, float) or load.tensor.value is not None and found.dims == ((1, 1),):
                return found
            if not self._is_whole(found):
                is_single = all(not step for step, _ in found.dims)
                return Tile(found.space, found.dtype, found.partition, found.partitions, found.offset, ((1, 1),)) if is_single else found
            return shape_of(found)

        arithmetic = Arithmetic(self.emitter.builder, scratch, (partitions, dims), resolve)
        expr: Expr = self.kernel.expr
        arithmetic.store(expr, shape_of(self.out))
