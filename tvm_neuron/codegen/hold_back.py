"""hold_back: weights that would come long before their use wait, so that other transfers don't queue behind them.

The DMA engines take transfers in the order in which these get ready. Weights get ready as soon as their place is free,
many at once where a large one is: what a layer stores or brings in then comes after all of them, and engines stand
still for it. So each transfer of weights waits until the PE array is so far that it still comes in time: the times are
those of the clock, taken from the end backwards. What is short of DRAM as it is doesn't wait for anything more.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.codegen.emit.emitter import WEIGHTS_QUEUE
from tvm_neuron.hw import Device
from tvm_neuron.isa import QUEUES, Instruction, Wait, affine
from tvm_neuron.isa.engines import of_dma
from tvm_neuron.program import Loop, Node, Program
from tvm_neuron.program.dynamic import Dynamic, expand
from tvm_neuron.sim.clock import Clock, run_clock
from tvm_neuron.sim.dependence import dependent

_EARLY = (2, 8, 16, 32)  # starts of a transfer, 3 to 42 us: so much earlier than needed, since others come between
_ROUNDS = 2  # what others no longer wait for changes the times
_LEAST_GAIN = 1000  # 1 / this of a run, which engines wait for others than weights
_WEIGHTS = QUEUES.index(f"dma{WEIGHTS_QUEUE}")
_PE = QUEUES.index("pe")
_OTHERS = [n for n, queue in enumerate(QUEUES) if of_dma(queue) and n != _WEIGHTS]


@dataclass(frozen=True)
class _Run:
    dynamic: Dynamic
    clock: Clock


def hold_back(program: Program, device: Device) -> tuple[Program, int]:
    """The program, its weights with further waits if it takes less time so, and that time in picoseconds."""
    dynamic = expand(program)
    needs_own = dependent(dynamic)  # of memory alone, whatever waits there are
    costs = [instruction.cost(device) for instruction in dynamic.statics]
    first = best = _Run(dynamic, run_clock(program, device, dynamic, costs, needs_own))
    if _waited_ps(first) * _LEAST_GAIN < first.clock.total:
        return program, first.clock.total
    for starts in _EARLY:
        run = first
        for _ in range(_ROUNDS):
            held = _counts(run, (1 + starts) * device.dma_start_ns * 1000)
            statics = tuple(_waiting(i, held.get(number, 0)) for number, i in enumerate(dynamic.statics))
            changed = replace(dynamic, statics=statics)
            run = _Run(changed, run_clock(program, device, changed, costs, needs_own))
            if run.clock.total >= best.clock.total:
                break
            best = run
    return program.with_body(_replaced(program.body, iter(best.dynamic.statics))), best.clock.total


def _waited_ps(run: _Run) -> int:
    """How long engines stand still for transfers other than weights, if there are weights."""
    engines = [n for n, queue in enumerate(QUEUES) if not of_dma(queue)]
    has_weights = bool((run.dynamic.queue == _WEIGHTS).any())
    return has_weights * sum(run.clock.stalls[engine][other] for engine in engines for other in _OTHERS)


def _counts(run: _Run, before_ps: int) -> dict[int, int]:
    """For each instruction that brings weights, how many of the PE array are complete so long before it must start."""
    queue, clock = run.dynamic.queue, run.clock
    rows, array = np.flatnonzero(queue == _WEIGHTS), np.flatnonzero(queue == _PE)
    ends = clock.end[array].tolist()
    earlier = np.searchsorted(array, rows).tolist()  # in the order of the program: a wait for these can't lock up
    found: dict[int, int] = {}
    for row, latest, most in zip(rows.tolist(), _latest(run, rows), earlier, strict=True):
        found.setdefault(int(run.dynamic.number[row]), min(most, bisect_right(ends, latest - before_ps)))
    return found


def _latest(run: _Run, rows: NDArray[np.intp]) -> list[int]:
    """When each transfer of weights must start: one after the other, while DMA has nothing else to do."""
    clock = run.clock
    needed = _needed(run, len(rows))
    others = np.flatnonzero(np.isin(run.dynamic.queue, _OTHERS))
    busy = sorted(zip(clock.start[others].tolist(), clock.end[others].tolist(), strict=True))
    found = []
    at = clock.total
    for row, need in zip(reversed(rows.tolist()), reversed(needed), strict=True):
        at, left = min(at, need), int(clock.end[row] - clock.start[row])
        while True:
            while busy and busy[-1][0] >= at:
                busy.pop()
            begin, end = busy[-1] if busy else (-left, at - left)
            if at - end >= left:
                break
            left -= max(at - end, 0)
            at = begin
        at -= left
        found.append(at)
    return found[::-1]


def _needed(run: _Run, transfers: int) -> list[int]:
    """When an instruction starts that waits for so many transfers of weights, or for more."""
    found = np.full(transfers, run.clock.total, np.int64)
    rows, queues, counts = run.dynamic.needs()
    waits = (queues == _WEIGHTS) & (counts > 0)
    np.minimum.at(found, counts[waits] - 1, run.clock.start[rows[waits]])
    return np.minimum.accumulate(found[::-1])[::-1].tolist()


def _replaced(body: tuple[Node, ...], instructions: Iterator[Instruction]) -> tuple[Node, ...]:
    """The same loops around these instructions."""
    return tuple(
        Loop(node.count, _replaced(node.body, instructions)) if isinstance(node, Loop) else next(instructions)
        for node in body
    )


def _waiting(instruction: Instruction, count: int) -> Instruction:
    """The instruction, which waits for as many of the PE array at least."""
    fixed = [w for w in instruction.waits if w.queue == "pe" and not w.count.terms]
    if max((min(w.count.base, w.cap) for w in fixed), default=0) >= count:
        return instruction
    others = [w for w in instruction.waits if w not in fixed]
    return replace(instruction, waits=(*others, Wait("pe", affine(count, ()), count)))  # type: ignore[type-var]
