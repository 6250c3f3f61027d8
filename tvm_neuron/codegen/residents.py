"""place_stage: where everything of one core's program lies, and which weights stay in SBUF between runs.

Weights stay as far as they find room without pushing tensors out to DRAM. If all do, nothing is kept free for weights
on their way to the PE array; else a ring is, and those stay that are needed first: the others have time to come.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import inf, prod

from tvm_neuron.allocation.layouts import aligned
from tvm_neuron.allocation.memory_plan import MemoryPlan, plan_within, plan_without_spills, tight_plans
from tvm_neuron.codegen.emit.contraction import kept_bytes
from tvm_neuron.codegen.kernels.weights_as_moving import moving_bytes
from tvm_neuron.codegen.stage import Stage
from tvm_neuron.codegen.zones import Zones, divide
from tvm_neuron.errors import CompileError, OptionError
from tvm_neuron.hw import Device
from tvm_neuron.isa.dtypes import size_bytes
from tvm_neuron.schedule.kernel import Contraction, Kernel

_ROUNDS = 7  # of the search for the room there is
_RING_SHARE = 8  # of SBUF, for weights that come in every run beside those that stay
_LESS_FOR_WEIGHTS = (4, 6, 8)  # of SBUF, where a third would push tensors out
_LEAST_FOR_WEIGHTS = (8, 12)  # of SBUF, where the order of kernels was chosen for it


@dataclass(frozen=True)
class Room:
    """The division of SBUF, the plan for tensors, and how much of each kernel's weights stays."""

    zones: Zones
    plan: MemoryPlan
    sizes: dict[Kernel, int]  # bytes of each partition that a kernel's weights take
    keeps: dict[Kernel, int] = field(default_factory=dict)  # at most so many of these stay

    @property
    def streamed(self) -> list[Kernel]:
        """The kernels of which weights come from DRAM in every run."""
        return [kernel for kernel, size in self.sizes.items() if self.keeps.get(kernel, 0) < size]

    @property
    def spilled(self) -> int:
        """How many tensors lie in DRAM."""
        return len(self.plan.in_dram)


def place_stage(stage: Stage, device: Device, keep_weights: bool) -> Room:
    """The room of a stage, with as many weights in it as fit if they may stay.

    Raises:
        CompileError: a kernel does not fit, even without weights that stay.
    """
    streaming = _streaming_room(stage, device)
    assert streaming is not None
    streaming = _with_sizes(streaming, stage, device)
    sizes = streaming.sizes
    if not keep_weights or not sizes:
        return streaming
    everything = _if_fits(stage, device, sizes, sizes, streaming)
    if everything:
        return everything
    best, low, high = streaming, 0, device.sbuf_bytes_per_partition
    for _ in range(_ROUNDS):
        budget = (low + high) // 2
        found = _if_fits(stage, device, _fill(sizes, budget), sizes, streaming)
        low, high, best = (budget, high, found) if found else (low, budget, best)
    return best


def place_within(stage: Stage, device: Device, most_spilled_bytes: int) -> Room | None:
    """The room of a stage whose weights come in every run.

    None if more bytes of each partition are spilled for it, or if some kernel does not fit.
    """
    try:
        found = _streaming_room(stage, device, most_spilled_bytes)
    except CompileError:  # the stage is one of several on trial
        return None
    return found and _with_sizes(found, stage, device)


def tight_rooms(room: Room) -> Iterator[Room]:
    """The room with its tensors in other places, which leave more memory for weights above all or most of them."""
    for plan in tight_plans(room.plan):
        yield replace(room, plan=plan)


def place_whole(stage: Stage, device: Device) -> Room | None:
    """The room of a stage whose weights come in every run, all tensors in SBUF; None if they don't fit.

    Tensors get all the room that they need: weights fit into the rest.
    """
    for share in _LEAST_FOR_WEIGHTS:
        zones = divide(stage.kernels, stage.partition_of, device, 0, aligned(device.sbuf_bytes_per_partition // share))
        plan = plan_without_spills(
            stage.kernels, stage.partition_of, stage.dtypes, stage.in_dram(), zones.tensors_at, zones.tensors_bytes,
            device, stage.tuning.strip_share,
        )  # fmt: skip
        if plan is not None:
            return _with_sizes(Room(zones, plan, {}), stage, device)
    return None


def _with_sizes(room: Room, stage: Stage, device: Device) -> Room:
    sizes = {k: kept_bytes(k, room.plan, device) for k in stage.kernels if isinstance(k.root, Contraction)}
    moving = {k: size for k in stage.kernels if (size := moving_bytes(k, device))}
    return replace(room, sizes=sizes | moving)


def _streaming_room(stage: Stage, device: Device, most_spilled_bytes: float = inf) -> Room | None:
    """With as much room for weights on their way as leaves the most tensors in SBUF; None if that is too few."""
    tiles = max((_tile_bytes(kernel, device) for kernel in stage.kernels), default=0)
    rings = [aligned(device.sbuf_bytes_per_partition // share) for share in _LESS_FOR_WEIGHTS]
    best: Room | None = None
    refusal: CompileError | None = None
    for ring in (stage.tuning.weights_bytes(device), *(ring for ring in rings if ring >= tiles)):
        try:
            found = _room(stage, device, {}, {}, ring, most_spilled_bytes)
        except CompileError as error:  # a kernel needs more room for tensors, which less for weights may give it
            refusal = refusal or error
            continue
        if found is not None:
            best, most_spilled_bytes = found, found.plan.spilled_bytes - 1
        if most_spilled_bytes < 0:
            break
    if best is None and refusal is not None:
        raise refusal
    return best


def _tile_bytes(kernel: Kernel, device: Device) -> int:
    """At most what the weights of a tile of output channels take of a partition, and those of the next beside them."""
    root = kernel.root
    if not isinstance(root, Contraction):
        return moving_bytes(kernel, device)
    _, *steps, columns = root.weights.shape
    runs = root.most_depth(device.pe_columns) // device.partitions + 2
    return 2 * runs * prod(steps) * min(columns, device.pe_columns) * size_bytes(root.dtype)


def check_all_stay(room: Room, stage: Stage, device: Device, cores: int) -> None:
    """Every kernel's weights stay in SBUF, as the option `static_weights` asks.

    Raises:
        OptionError: some don't fit.
    """
    if not room.streamed:
        return
    needed, kept = sum(room.sizes.values()), room.zones.resident_bytes
    free = max(kept, device.sbuf_bytes_per_partition - room.zones.tensors_at - room.plan.extent_bytes)
    enough = -(-cores * needed // max(free, 1))
    raise OptionError(
        f"static_weights: the weights of {stage.name} take {needed} bytes of each SBUF partition, and {free} are free "
        f"for them on {device.name}; cut the model over more cores (pipeline_cores of about {max(enough, cores + 1)}), "
        f"or leave static_weights out: then {len(room.streamed)} of {len(room.sizes)} operators read theirs from DRAM"
    )


def _fill(sizes: dict[Kernel, int], budget: int) -> dict[Kernel, int]:
    chosen: dict[Kernel, int] = {}
    for kernel, size in sizes.items():
        chosen[kernel] = min(size, budget)
        budget -= chosen[kernel]
    return chosen


def _if_fits(
    stage: Stage, device: Device, kept: dict[Kernel, int], sizes: dict[Kernel, int], streaming: Room
) -> Room | None:
    """The room in which those weights stay, if no more tensors are spilled for it."""
    rest = {kernel: size - kept[kernel] for kernel, size in sizes.items() if kept[kernel] < size}
    ring = 0
    if rest:
        tiles = max(_tile_bytes(kernel, device) for kernel in rest)
        ring = max(tiles, min(aligned(2 * max(rest.values())), device.sbuf_bytes_per_partition // _RING_SHARE))
    if sum(kept.values()) + ring >= device.sbuf_bytes_per_partition - streaming.zones.tensors_at:
        return None
    try:
        room = _room(stage, device, sizes, kept, ring)
    except CompileError:  # some kernel can't be cut as small as would be needed
        return None
    return room if room and room.spilled <= streaming.spilled else None


def _room(
    stage: Stage, device: Device, sizes: dict[Kernel, int], kept: dict[Kernel, int], ring: int,
    most_spilled_bytes: float = inf,
) -> Room | None:  # fmt: skip
    """With so much for the weights that stay and for those on their way; None if too much is spilled for it."""
    zones = divide(stage.kernels, stage.partition_of, device, sum(kept.values()), ring)
    plan = plan_within(
        stage.kernels, stage.partition_of, stage.dtypes, stage.in_dram(), zones.tensors_at, zones.tensors_bytes,
        device, stage.tuning.strip_share, most_spilled_bytes,
    )  # fmt: skip
    return Room(zones, plan, sizes, kept) if plan else None
