"""choose: of stages in several orders and places, the one whose program the clock finds quickest."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tvm_neuron.codegen.emit_stage import Emitted, emit_stage
from tvm_neuron.codegen.exact_waits import with_exact_waits
from tvm_neuron.codegen.first_transfers import brought_in_order, gathers_apart, inputs_first
from tvm_neuron.codegen.hold_back import hold_back
from tvm_neuron.codegen.join_loads import join_loads
from tvm_neuron.codegen.make_diagonals import with_diagonals
from tvm_neuron.codegen.options import BuildOptions
from tvm_neuron.codegen.overlap.list_schedule import list_schedules
from tvm_neuron.codegen.residents import Room, place_within
from tvm_neuron.codegen.stage import Stage
from tvm_neuron.codegen.steps import Alternative
from tvm_neuron.codegen.sync import synchronise
from tvm_neuron.hw import Device
from tvm_neuron.program import Program
from tvm_neuron.sim import time_program

HOLD_BACK = Alternative("hold_back", "all waits are known, and what they cost")
APART = Alternative("chunks_apart", "places and orders are chosen, and the clock tells whether it is quicker")
LISTED = Alternative("list_schedules", "what kernels have become is known, and the clock tells whether it is quicker")
DIAGONALS = Alternative("with_diagonals", "what waits for DRAM is known, and the clock tells whether it is quicker")
JOIN_LOADS = Alternative("join_loads", "the places of all weights are known, and the clock tells whether it is quicker")
INPUTS_FIRST = Alternative("inputs_first", "no transfer is joined any more, and the clock tells whether it is quicker")
IN_ORDER = Alternative("brought_in_order", "all waits are known, and the clock tells whether it is quicker")
EXACT_WAITS = Alternative("with_exact_waits", "last, since a step before would look at all that is written out")
GATHERS_APART = Alternative("gathers_apart", "transfers are in order, and the clock tells whether it is quicker")

_LEAST_GAIN = 200  # 1 / this of a run, for which another program is worth its making


@dataclass(frozen=True)
class Made:
    """A stage in its room, what it becomes, and the program of a run, with waits, and what it takes."""

    stage: Stage
    room: Room
    emitted: Emitted
    program: Program
    total_ps: int


def choose(
    ways: Sequence[Iterable[tuple[Stage, Room]]], device: Device, options: BuildOptions, keep_weights: bool
) -> tuple[Made, int]:
    """The quickest of the candidates as far as there is time for them, and the number of its way.

    The beginnings of all ways are compared, then what else the best of them has. -O1 takes the first of all, and so
    does what is alone.
    """
    begun = [iter(way) for way in ways]
    to_begin = list(range(1, len(ways)))
    first = next(begun[0])  # what comes before it, tiles above all, is done once
    begin = time.monotonic()
    best, its = _made(*first, device, options, keep_weights), 0
    seconds = time.monotonic() - begin
    while options.optlevel > 1 and options.has_time(seconds):
        begin = time.monotonic()
        way = to_begin.pop(0) if to_begin else its
        other = next(begun[way], None)
        if other is None and way == its:
            break
        if other is None:
            continue
        options.on_stage(f"{best.stage.name}: {best.total_ps / 1e6:,.1f} us; try another order")
        made = _made(*other, device, None, keep_weights)
        best, its = (made, way) if made.total_ps < best.total_ps else (best, its)
        seconds = max(seconds, time.monotonic() - begin)
    if options.optlevel > 1 and options.has_time(seconds):
        best = _finished(best, device, keep_weights)
    return best, its


def _finished(made: Made, device: Device, keep_weights: bool) -> Made:
    """What is left to try with the best of the candidates: its order, its transfers, and its waits."""
    orders = [made, *(_listed(made, device) if LISTED.is_taken and not keep_weights else ())]
    pairs = [(each, _with_transfers_arranged(each, device)) for each in orders]
    made, best = min(pairs, key=lambda pair: pair[1].total_ps)
    # An instruction for each chunk starts sooner, by no more than one for several takes.
    if made.emitted.joined_ps * _LEAST_GAIN > made.total_ps and APART.is_taken:
        apart = _made(replace(made.stage, chunks_apart=True), made.room, device, None, keep_weights)
        pairs = [(made, best), (apart, _with_transfers_arranged(apart, device))]
        made, best = min(pairs, key=lambda pair: pair[1].total_ps)
    diagonals = _with_diagonals(made, device) if DIAGONALS.is_taken else None
    best = best if diagonals is None else min(best, diagonals, key=lambda each: each.total_ps)
    exact = _quicker(best, with_exact_waits(best.emitted, device), device) if EXACT_WAITS.is_taken else best
    return exact if (best.total_ps - exact.total_ps) * _LEAST_GAIN > best.total_ps else best


def _listed(made: Made, device: Device) -> list[Made]:
    """The quickest of those with its kernels in other orders, which need not be quicker; none if none finds room."""
    found = []
    for stage in list_schedules(made.stage, made.emitted.nodes, device):
        room = place_within(stage, device, made.room.plan.spilled_bytes)
        if room is not None:
            found.append(_made(stage, room, device, None, keep_weights=False))
    return sorted(found, key=lambda each: each.total_ps)[:1]


def _with_transfers_arranged(made: Made, device: Device) -> Made:
    """The same with weights that come together, and what the first layers need before the rest, if that is quicker."""
    if JOIN_LOADS.is_taken:
        made = _quicker(made, join_loads(made.emitted, device), device)
    if INPUTS_FIRST.is_taken:
        made = _quicker(made, inputs_first(made.emitted), device)
    if IN_ORDER.is_taken:
        for kinds in (("weight",), ("weight", "input")):
            made = _quicker(made, brought_in_order(made.emitted, made.program, kinds), device)
    if GATHERS_APART.is_taken:
        made = _quicker(made, gathers_apart(made.emitted), device)
    return made


def _with_diagonals(made: Made, device: Device) -> Made | None:
    """The quickest of those with some of their weights made; None if none are."""
    found = with_diagonals(made.emitted, made.program, device)
    others = [_timed(made.stage, made.room, each, synchronise(each.program, device), device) for each in found]
    best = min(others, key=lambda each: each.total_ps, default=None)
    return None if best is None else _with_transfers_arranged(best, device)


def _quicker(made: Made, emitted: Emitted, device: Device) -> Made:
    """What becomes of the same stage emitted otherwise, if that is quicker."""
    if emitted is made.emitted:
        return made
    other = _timed(made.stage, made.room, emitted, synchronise(emitted.program, device), device)
    return other if other.total_ps < made.total_ps else made


def _made(stage: Stage, room: Room, device: Device, options: BuildOptions | None, keep_weights: bool) -> Made:
    """The program of a stage; `options` are told of the steps."""
    on_stage = options.on_stage if options else lambda _stage: None
    on_stage(f"{stage.name}: emit")
    emitted = emit_stage(stage, room, device, keep_weights)
    on_stage(f"{stage.name}: synchronise")
    return _timed(stage, room, emitted, synchronise(emitted.program, device), device)


def _timed(stage: Stage, room: Room, emitted: Emitted, program: Program, device: Device) -> Made:
    """The program with waits, and what it takes."""
    if HOLD_BACK.is_taken:
        return Made(stage, room, emitted, *hold_back(program, device))
    return Made(stage, room, emitted, program, time_program(program, device).total_ps)
