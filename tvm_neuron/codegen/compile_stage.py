"""compile_stage: the list of steps from the kernels of one core to its NEFF."""

from collections.abc import Iterator, Sequence

from tvm_neuron.codegen.choose import (
    APART,
    DIAGONALS,
    EXACT_WAITS,
    GATHERS_APART,
    HOLD_BACK,
    IN_ORDER,
    INPUTS_FIRST,
    JOIN_LOADS,
    LISTED,
    choose,
)
from tvm_neuron.codegen.emit.builder import Builder
from tvm_neuron.codegen.emit.stay_in_psum import STAY_IN_PSUM
from tvm_neuron.codegen.emit_stage import emit_stage
from tvm_neuron.codegen.kept_outputs import with_outputs_kept
from tvm_neuron.codegen.kernels.bring_inputs import BRING_INPUTS
from tvm_neuron.codegen.kernels.weights_as_moving import WEIGHTS_AS_MOVING
from tvm_neuron.codegen.least_time import least_ps
from tvm_neuron.codegen.options import LEVELS, BuildOptions
from tvm_neuron.codegen.overlap.arriving import start_as_it_arrives
from tvm_neuron.codegen.overlap.overlap import overlap_batch
from tvm_neuron.codegen.residents import Room, check_all_stay, place_stage, place_within
from tvm_neuron.codegen.search import left_out
from tvm_neuron.codegen.stage import Stage
from tvm_neuron.codegen.steps import Alternative
from tvm_neuron.codegen.sync import synchronise
from tvm_neuron.codegen.tiles.run_in_tiles import tile_stage, with_less_for_weights
from tvm_neuron.codegen.tiles.tries import tries
from tvm_neuron.codegen.work import kernel_macs
from tvm_neuron.hw import Device
from tvm_neuron.neff import Neff
from tvm_neuron.program import Program
from tvm_neuron.program.race import check_races
from tvm_neuron.program.residents import check_residents
from tvm_neuron.program.verify import verify
from tvm_neuron.runtime import VERSION
from tvm_neuron.sim import Timing, time_program

_TILED_FROM = (1.0, 0.93, 0.85)  # of the memory for tensors, from where on kernels run in tiles
_MOST_ARRIVING = 5  # contractions that start as the input arrives: later ones have maps of few tiles, which aren't cut
_MORE_ARRIVING = 1.25  # times the memory for tensors at most: they are alive side by side, and weights need it, too

OVERLAP = Alternative("overlap_batch", "all kernels are there, and no tile yet: parts of a batch cut all of them")
KEPT = Alternative("with_outputs_kept", "where nothing runs in tiles, which leave no room")
ARRIVING = Alternative("start_as_it_arrives", "where nothing runs in tiles, which also start with what has come")
ORDERS = Alternative("orders", "tiles are there, and the clock tells which order is quickest")
STEPS = (
    WEIGHTS_AS_MOVING, BRING_INPUTS, OVERLAP, KEPT, ARRIVING, ORDERS, STAY_IN_PSUM, LISTED, APART, DIAGONALS, HOLD_BACK,
    JOIN_LOADS, INPUTS_FIRST, IN_ORDER, GATHERS_APART, EXACT_WAITS,
)  # fmt: skip
"""What becomes of the kernels of a core; between, tiles and places in memory are chosen, which all programs need."""


def compile_stage(ways: Sequence[Stage], device: Device, options: BuildOptions, keep_weights: bool) -> Neff:
    """The NEFF of one core, which runs the quickest of some stages that do the same.

    Raises:
        CompileError: an operator needs more on-chip memory than there is.
        ProgramError: the compiler made a program that breaks a rule or races with itself (a defect of ours).
    """
    options.on_stage(f"{ways[0].name}: place tensors")
    first, *others = (_placed(stage, device, options, keep_weights) for stage in ways)
    made, way = choose([first, *map(_if_it_fits, others)], device, options, keep_weights)
    macs = kernel_macs(ways[way].kernels, ways[way].asked_macs)
    least = least_ps(ways[way].kernels, macs, device)
    stage, room, emitted, program = made.stage, made.room, made.emitted, made.program
    if options.static_weights:
        check_all_stay(room, stage, device, options.pipeline_cores)
    prologue = synchronise(program.with_body(emitted.prologue), device)
    options.on_stage(f"{stage.name}: check")
    for part in (prologue, program):
        verify(part, device)
        check_races(part, device)
    check_residents(prologue, program)
    return Neff(
        name=stage.name,
        program=program,
        prologue=prologue.body,
        device=device,
        weights=emitted.arrays,
        inputs=tuple(stage.inputs.values()),
        outputs=tuple(stage.outputs.values()),
        options=options.to_dict(),
        compiler_version=VERSION,
        macs=round(sum(macs.values())),
        least_ps=least,
        repeats=emitted.builder.repeats,
        memory=_memory_report(program, room, emitted.builder, device),
    )


def _if_it_fits(candidates: Iterator[tuple[Stage, Room]]) -> Iterator[tuple[Stage, Room]]:
    with left_out([]):
        yield from candidates


def _placed(stage: Stage, device: Device, options: BuildOptions, keep_weights: bool) -> Iterator[tuple[Stage, Room]]:
    """The stage and its room: in parts of the batch that overlap if these fit, else in tiles where tensors don't.

    Where it is in tiles, it comes in several orders and places, among which to choose.
    """
    if keep_weights:
        yield stage, place_stage(stage, device, keep_weights)
        return
    overlapping = overlap_batch(stage, device) if OVERLAP.is_taken else None
    if overlapping is not None:
        yield overlapping
        return
    tiled, room = _in_tiles(stage, device)
    tiles = frozenset(tiled.kernels) - frozenset(stage.kernels)
    if not tiles and not tiled.spilled > stage.spilled:
        if KEPT.is_taken:
            tiled, room = with_outputs_kept(tiled, room, device)
        yield _started(tiled, room, device)
        return
    if not ORDERS.is_taken:
        yield tiled, room
        return
    yield from tries(tiled, room, frozenset(tiled.kernels) - tiles, device, options.optlevel == max(LEVELS))


def _started(stage: Stage, room: Room, device: Device) -> tuple[Stage, Room]:
    """The stage with its first kernels in strips as an input arrives, and its room, if that takes little more."""
    for contractions in range(_MOST_ARRIVING if ARRIVING.is_taken else 0, 0, -1):
        started = start_as_it_arrives(stage, device, contractions)
        found = place_within(started, device, room.plan.spilled_bytes)
        if found is not None and found.plan.extent_bytes <= _MORE_ARRIVING * room.plan.extent_bytes:
            return started, found
    return stage, room


def _in_tiles(stage: Stage, device: Device) -> tuple[Stage, Room]:
    """The stage in tiles where tensors don't fit, and its room.

    Tensors that would just fit may find no room side by side; kernels then run in tiles where they come near that.
    Or tensors would take memory that weights need. Where tiles go through DRAM, they may not have to beside less for
    weights.
    """
    found: list[tuple[Stage, Room]] = []
    for share in _TILED_FROM:
        tiled = tile_stage(stage, device, share)
        found.append((tiled, place_stage(tiled, device, keep_weights=False)))
        is_enough = share < 1 or len(tiled.kernels) == len(stage.kernels) or not _lacking_bytes(*found[-1], device)
        if is_enough and found[-1][1].plan.in_dram == tiled.in_dram():
            break
    less = with_less_for_weights(stage, device) if found[-1][0].spilled > stage.spilled else None
    if less is not None:
        tiled = tile_stage(less, device)
        found.append((tiled, place_stage(tiled, device, keep_weights=False)))
    # What goes out to DRAM comes back, too; weights only come once more.
    return min(found, key=lambda pair: 2 * pair[1].plan.spilled_bytes + _lacking_bytes(pair[0], pair[1], device))


def _lacking_bytes(stage: Stage, room: Room, device: Device) -> int:
    """Of each partition, that tensors leave less for weights than tiles were cut for: these load weights again."""
    left = device.sbuf_bytes_per_partition - room.zones.tensors_at - room.plan.extent_bytes
    return max(0, stage.tuning.weights_bytes(device) - left)


def time_stage(stage: Stage, device: Device) -> Timing:
    """The clock of a run of what `compile_stage` would make, with weights that stay.

    Raises:
        CompileError: see `compile_stage`.
    """
    emitted = emit_stage(stage, place_stage(stage, device, keep_weights=True), device, keep_weights=True)
    return time_program(synchronise(emitted.program, device), device)


def _memory_report(program: Program, room: Room, builder: Builder, device: Device) -> dict[str, int]:
    def total(kind: str) -> int:
        return sum(tensor.size_bytes for tensor in program.tensors if tensor.kind == kind)

    used = room.zones.tensors_at + room.plan.extent_bytes + builder.weights.used
    kept = builder.resident.used
    return {
        "weights": total("weight"),
        "weights_kept": kept * device.partitions,
        "weights_streamed": (sum(room.sizes.values()) - kept if room.streamed else 0) * device.partitions,
        "resident": room.zones.resident_bytes * device.partitions,
        "activations": room.plan.peak_bytes_per_partition * device.partitions,
        "spill": total("scratch"),
        "sbuf_peak": used * device.partitions,
    }
