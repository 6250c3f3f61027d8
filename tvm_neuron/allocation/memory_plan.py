"""memory_plan: where every tensor of the subgraph lies; what does not fit in SBUF is spilled to DRAM, by plan."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from math import inf

from tvm_neuron.allocation.buffers import buffers_of, extents, life_of, steps_of
from tvm_neuron.allocation.in_place import Life, in_place, may_share
from tvm_neuron.allocation.layouts import bytes_on_chip, on_chip
from tvm_neuron.allocation.place import Buffer, peak_bytes, place, tightest
from tvm_neuron.allocation.regions import Box, box, grains, joined, source_maps, strip_sizes, strips, whole, whole_rows
from tvm_neuron.allocation.storage import OnChip
from tvm_neuron.allocation.transfers import box_cycles
from tvm_neuron.errors import CompileError, UnschedulableError
from tvm_neuron.hw import Device
from tvm_neuron.schedule.kernel import Contraction, Gather, Kernel, Product
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import Region

Stage = tuple[Kernel, Tensor, int]  # the part of a DRAM tensor that a strip works on; two slots take turns

IDLE_STEPS = 8  # kernels for which a tensor's memory is left alone where there is enough


@dataclass
class MemoryPlan:
    """SBUF offsets of resident tensors and of staging buffers; `strips` for kernels that work through DRAM tensors."""

    partition_of: dict[Tensor, int]
    dtypes: dict[Tensor, str]
    in_dram: set[Tensor]
    offsets: dict[object, int] = field(default_factory=dict)
    strips: dict[Kernel, list[Region]] = field(default_factory=dict)
    base: int = 0
    peak_bytes_per_partition: int = 0
    buffers: list[Buffer] = field(default_factory=list)  # all that have offsets of their own
    owners: dict[Tensor, Tensor] = field(default_factory=dict)  # of those that lie in the buffer of another one
    extents: list[int] = field(default_factory=list)  # by kernel: from `base` to the end of what is still needed

    @property
    def spilled_bytes(self) -> int:
        """Bytes of each partition that tensors would take which found no room."""
        return sum(self.bytes_of(tensor) for tensor in self.in_dram if tensor.kind == "temp")

    def bytes_of(self, tensor: Tensor) -> int:
        """Bytes of each partition that a whole tensor takes."""
        return bytes_on_chip(self.dtypes[tensor], self.partition_of[tensor], tensor.shape)

    @property
    def extent_bytes(self) -> int:
        """From `base` to the end of the last buffer, in each partition."""
        return max(self.extents, default=0)

    def resident(self, tensor: Tensor) -> OnChip:
        """The storage of a tensor that lives in SBUF."""
        origin = (0,) * len(tensor.shape)
        at = self.base + self.offsets[tensor]
        found = on_chip(self.dtypes[tensor], self.partition_of[tensor], at, origin, tensor.shape)
        return replace(found, chunk_elems=0) if tensor.is_spread else found

    def staged(self, kernel: Kernel, tensor: Tensor, slot: int, part: Box) -> OnChip:
        """The storage of a box of a DRAM tensor while a strip works on it."""
        several = len(self.strips[kernel]) > 1
        at = self.base + self.offsets[kernel, tensor, slot % 2 if several else 0]
        return on_chip(self.stage_dtype(kernel, tensor), self.partition_of[tensor], at, *part)

    def stage_dtype(self, kernel: Kernel, tensor: Tensor) -> str:
        """Staged data are converted where the PE array will read them."""
        if isinstance(kernel.root, Contraction | Product) and tensor in kernel.multiplied():
            return kernel.root.dtype
        return self.dtypes[tensor]

    def boxes(self, kernel: Kernel, region: Region) -> dict[Tensor, Box]:
        """The box of each DRAM tensor (sources and output) that the kernel touches in a region.

        One that it reads and writes has one box around both, with all partitions, so that each keeps its place.
        """
        found: dict[Tensor, Box] = {}
        for tensor in dict.fromkeys(kernel.sources()):
            if tensor in self.in_dram:
                every = source_maps(kernel, tensor, self.partition_of[tensor])
                part = joined([box(maps, region) for maps in every])
                found[tensor] = whole_rows(part, tensor.shape, self.partition_of[tensor])
        if kernel.out in self.in_dram:
            written = box(kernel.out_maps, region)
            is_read = kernel.out in found
            found[kernel.out] = self._around(kernel.out, found[kernel.out], written) if is_read else written
        return found

    def _around(self, tensor: Tensor, *parts: Box) -> Box:
        """The box around some, with all partitions."""
        dim = self.partition_of[tensor]
        origin, shape = map(list, joined(parts))
        origin[dim], shape[dim] = 0, tensor.shape[dim]
        return tuple(origin), tuple(shape)

    def stage_bytes(self, kernel: Kernel, region: Region) -> dict[Tensor, int]:
        """Bytes of each partition that those boxes take."""
        return {
            tensor: bytes_on_chip(self.stage_dtype(kernel, tensor), self.partition_of[tensor], shape)
            for tensor, (_, shape) in self.boxes(kernel, region).items()
        }


@dataclass(frozen=True)
class _Tensors:
    """What stays as it is while tensors are spilled: how long they live, bytes of each partition, what may share."""

    life: Life
    sizes: Mapping[Tensor, int]
    may_share: Mapping[Tensor, Sequence[Tensor]]

    @classmethod
    def of(cls, kernels: list[Kernel], plan: MemoryPlan) -> "_Tensors":
        """Those that kernels touch."""
        life = life_of(kernels)
        sizes = {tensor: plan.bytes_of(tensor) for tensor in life}
        return cls(life, sizes, may_share(kernels, life, plan.partition_of, plan.dtypes))


def strip_bytes(
    kernel: Kernel, partition_of: dict[Tensor, int], dtypes: dict[Tensor, str], budget: int, device: Device
) -> int:
    """Bytes of each partition for a strip of a kernel whose tensors are all in DRAM; at most `budget` if it can be."""
    plan = MemoryPlan(partition_of, dtypes, set(kernel.tensors))
    size_of, moved_of = partial(_stage_total, plan, kernel), partial(_moved_cycles, plan, kernel, device)
    sizes = strip_sizes(kernel, size_of, moved_of, budget, grains(kernel, partition_of))
    return size_of({axis: (0, size) for axis, size in sizes.items()})


def strip_loads(
    kernel: Kernel, partition_of: dict[Tensor, int], dtypes: dict[Tensor, str], in_dram: set[Tensor], budget: int,
    device: Device,
) -> dict[Tensor, tuple[int, int]]:  # fmt: skip
    """By tensor that comes from DRAM, cycles of the DMA for strips of at most `budget` bytes, and for it as a whole."""
    plan = MemoryPlan(partition_of, dtypes, in_dram)
    _staged_by(kernel, 0, plan, budget, device)
    found = {}
    for tensor in in_dram.intersection(kernel.sources()):
        boxes = (plan.boxes(kernel, region)[tensor] for region in plan.strips[kernel])
        strips_cycles = sum(_box_cycles(plan, kernel, tensor, shape, device) for _, shape in boxes)
        found[tensor] = strips_cycles, _box_cycles(plan, kernel, tensor, tensor.shape, device)
    return found


def plan_within(
    kernels: list[Kernel], partition_of: dict[Tensor, int], dtypes: dict[Tensor, str], in_dram: set[Tensor],
    base: int, capacity: int, device: Device, strip_share: int = 5, most_spilled_bytes: float = inf,
) -> MemoryPlan | None:  # fmt: skip
    """Offsets within [base, base + capacity) of each partition; tensors are spilled until everything fits.

    Where they take little of it, the memory of one is left alone for a while before another one takes it. None as soon
    as more than so many bytes of each partition are spilled.

    A strip of a kernel that works through DRAM tensors takes at most 1 / `strip_share` of the capacity.

    Raises:
        CompileError: a single kernel needs more SBUF than there is, however it is cut.
    """
    plan = MemoryPlan(partition_of, dtypes, set(in_dram), base=base)
    tensors, staged = _Tensors.of(kernels, plan), _staged(kernels, plan, capacity // strip_share, device)
    touched = steps_of(kernels)
    while plan.spilled_bytes <= most_spilled_bytes:
        failed = _place(tensors, plan, capacity, staged)
        if failed is None:
            return plan
        victim = _victim(*failed, capacity)
        plan.in_dram.add(victim)
        for step in touched[victim]:
            staged[step] = _staged_by(kernels[step], step, plan, capacity // strip_share, device)
    return None


def plan_without_spills(
    kernels: list[Kernel], partition_of: dict[Tensor, int], dtypes: dict[Tensor, str], in_dram: set[Tensor],
    base: int, capacity: int, device: Device, strip_share: int = 5,
) -> MemoryPlan | None:  # fmt: skip
    """The same where everything fits as it is; else None."""
    plan = MemoryPlan(partition_of, dtypes, set(in_dram), base=base)
    staged = _staged(kernels, plan, capacity // strip_share, device)
    return plan if _place(_Tensors.of(kernels, plan), plan, capacity, staged) is None else None


def tight_plans(plan: MemoryPlan) -> Iterator[MemoryPlan]:
    """The plan with its buffers in other places, which end no higher."""
    for found in tightest(plan.buffers, plan.extent_bytes):
        ends = extents(plan.buffers, found, len(plan.extents))
        offsets = found | {tensor: found[owner] for tensor, owner in plan.owners.items()}
        yield replace(plan, offsets=offsets, extents=ends)


def _place(
    tensors: _Tensors, plan: MemoryPlan, capacity: int, staged: Sequence[Sequence[Buffer]]
) -> tuple[list[Buffer], Buffer] | None:
    """Sets the offsets, also of what is `staged` by each kernel; else all buffers and the first that found no room.

    Tensors in the place of others take less, but live longer together, which may leave no gap that others fit into.
    """
    found = in_place(tensors.may_share, plan.in_dram)
    failures = []
    for shared in (found, {}) if found else (found,):
        resident, owners = buffers_of(tensors.life, tensors.sizes, shared, plan.in_dram)
        buffers = [*resident, *chain.from_iterable(staged)]
        plan.offsets, failed = _place_apart(buffers, capacity)
        if failed is None:
            plan.offsets |= {tensor: plan.offsets[owner] for tensor, owner in owners.items()}
            plan.owners, plan.buffers, plan.peak_bytes_per_partition = owners, buffers, peak_bytes(buffers)
            plan.extents = extents(buffers, plan.offsets, len(staged))
            return None
        failures.append((buffers, failed))
        if peak_bytes(buffers) > capacity:
            break  # no less is alive at once where no memory is shared
    return failures[0]


def _place_apart(buffers: list[Buffer], capacity: int) -> tuple[dict[object, int], Buffer | None]:
    """Offsets; if half of the capacity is enough for that, all keep their memory for some kernels more.

    Then the next ones needn't wait for the readers of these, and transfers come early; the other half is of more use to
    weights. If it is enough even for that, inputs have theirs from the beginning, and outputs, which may be stored long
    after the last kernel that reads them, to the end.
    """
    end = max((buffer.last for buffer in buffers), default=0)
    for edges in (True, False) if peak_bytes(buffers) <= capacity // 2 else ():
        apart = [_apart(buffer, end if edges else 0) for buffer in buffers]
        if peak_bytes(apart) <= capacity // 2:
            offsets, failed = place(apart, capacity // 2)
            if failed is None:
                return offsets, None
    return place(buffers, capacity)


def _apart(buffer: Buffer, end: int) -> Buffer:
    tensor = buffer.name[1] if isinstance(buffer.name, tuple) else buffer.name
    kind = tensor.kind if isinstance(tensor, Tensor) else ""
    first = 0 if kind == "input" and end else buffer.first
    return replace(buffer, first=first, last=max(buffer.last + IDLE_STEPS, end if kind == "output" else 0))


def _staged(kernels: list[Kernel], plan: MemoryPlan, strip_bytes: int, device: Device) -> list[list[Buffer]]:
    """By kernel, the buffers of what comes from DRAM strip by strip; sets the strips."""
    return [_staged_by(kernel, step, plan, strip_bytes, device) for step, kernel in enumerate(kernels)]


def _staged_by(kernel: Kernel, step: int, plan: MemoryPlan, strip_bytes: int, device: Device) -> list[Buffer]:
    if kernel.by_dma:
        if not isinstance(kernel.root, Gather) or kernel.root.positions.tensor not in plan.in_dram:
            return []
        plan.strips[kernel] = [whole(kernel)]
        return [_whole_buffer(plan, kernel, kernel.root.positions.tensor, step)]
    if plan.in_dram.isdisjoint(kernel.tensors):
        plan.strips[kernel] = [whole(kernel)]
        return []
    size_of, moved_of = partial(_stage_total, plan, kernel), partial(_moved_cycles, plan, kernel, device)
    plan.strips[kernel] = strips(kernel, size_of, moved_of, strip_bytes, grains(kernel, plan.partition_of))
    slots = 2 if len(plan.strips[kernel]) > 1 else 1
    largest: dict[Tensor, int] = {}
    for part in plan.strips[kernel]:
        for tensor, size in plan.stage_bytes(kernel, part).items():
            largest[tensor] = max(largest.get(tensor, 0), size)
    return [Buffer((kernel, t, slot), size, step, step) for t, size in largest.items() for slot in range(slots)]


def _whole_buffer(plan: MemoryPlan, kernel: Kernel, tensor: Tensor, step: int) -> Buffer:
    """Where a DRAM tensor is staged that a kernel needs as a whole."""
    size = bytes_on_chip(plan.stage_dtype(kernel, tensor), plan.partition_of[tensor], tensor.shape)
    return Buffer((kernel, tensor, 0), size, step, step)


def _stage_total(plan: MemoryPlan, kernel: Kernel, region: Region) -> int:
    return sum(plan.stage_bytes(kernel, region).values())


def _moved_cycles(plan: MemoryPlan, kernel: Kernel, device: Device, region: Region) -> int:
    """Of the DMA, for those boxes."""
    return sum(_box_cycles(plan, kernel, t, shape, device) for t, (_, shape) in plan.boxes(kernel, region).items())


def _box_cycles(plan: MemoryPlan, kernel: Kernel, tensor: Tensor, shape: Sequence[int], device: Device) -> int:
    dtypes = plan.dtypes[tensor], plan.stage_dtype(kernel, tensor)
    return box_cycles(tensor, shape, plan.partition_of[tensor], *dtypes, device)


def _victim(buffers: list[Buffer], failed: Buffer, capacity: int) -> Tensor:
    """The tensor to spill: the largest of those alive beside the buffer that found no room; of several the longest."""
    alive = [b for b in buffers if isinstance(b.name, Tensor) and b.overlaps(failed)]
    if not alive:
        kernel = failed.name[0] if isinstance(failed.name, tuple) else None
        needed = sum(b.size for b in buffers if b.overlaps(failed))  # each of them is there for this kernel alone
        reason = f"needs {needed} bytes of each SBUF partition at once; {capacity} are there for tensors"
        if isinstance(kernel, Kernel):
            raise UnschedulableError(f"{kernel.origins[0]} {reason}", kernel.origins[0].name, f"it {reason}")
        raise CompileError(f"{failed.name} {reason}")
    return max(alive, key=lambda b: (b.size, b.last - b.first)).name  # type: ignore[return-value]
