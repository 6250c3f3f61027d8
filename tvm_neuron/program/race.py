"""check_races: proves that the waits order every two accesses to the same bytes of which one writes.

Happens-before by vector clocks, one number a queue: how many of its instructions are complete when an instruction
starts. A queue runs its instructions one after the other; a wait adds what the awaited instruction itself knew.
The memories are followed in cells, small enough that no tile of the program ends within one, with the last
access of every queue to each: what is ordered after that is ordered after all before it.
"""

from tvm_neuron.errors import ProgramError
from tvm_neuron.hw import Device
from tvm_neuron.isa import QUEUES
from tvm_neuron.program.cells import Footprint, footprints
from tvm_neuron.program.dynamic import Dynamic, expand, who
from tvm_neuron.program.program import Program
from tvm_neuron.program.shadow import Shadow

Clock = list[int]


def check_races(program: Program, device: Device) -> None:
    """Refuses a program whose result could depend on how quick its engines are.

    Raises:
        ProgramError: two accesses to the same bytes aren't ordered; names both instructions and model operators.
    """
    dynamic = expand(program)
    clocks = _clocks(program, dynamic)
    tiles, cells = footprints(program, device, dynamic)
    shadows = {place: Shadow(size) for place, size in cells.items()}
    queues, positions, numbers = dynamic.queue.tolist(), dynamic.position.tolist(), dynamic.number.tolist()
    turn = [0] * len(dynamic.statics)
    for row, number in enumerate(numbers):
        clock, queue, position = clocks[row], queues[row], positions[row] + 1
        for tile in tiles[number]:
            at = tile.at[turn[number]]
            shadow = shadows[tile.place]
            other = shadow.unordered(tile, at, clock, queue)
            if other:
                later = program.origins[dynamic.statics[number].origin]
                raise ProgramError(_message(program, dynamic, tile, other, row), later.name)
            shadow.record(tile, at, queue, position)
        turn[number] += 1


def _clocks(program: Program, dynamic: Dynamic) -> list[Clock]:
    """For each dynamic instruction, how many of each queue are complete when it starts, whatever the engines' speed."""
    waits = dynamic.waits()
    by_queue: list[list[Clock]] = [[] for _ in QUEUES]
    clocks: list[Clock] = []
    for row, (queue, position) in enumerate(zip(dynamic.queue.tolist(), dynamic.position.tolist(), strict=True)):
        mine = by_queue[queue]
        clock = mine[-1].copy() if mine else [0] * len(QUEUES)
        clock[queue] = position
        for other, count in waits[row]:
            if count <= clock[other]:
                continue
            theirs = by_queue[other]
            if count > len(theirs):
                raise ProgramError(
                    f"{who(program, dynamic.statics[dynamic.number[row]])} waits for {count} completions of "
                    f"{QUEUES[other]}, but only {len(theirs)} come before it"
                )
            clock = list(map(max, clock, theirs[count - 1]))
            clock[other] = max(clock[other], count)
        mine.append(clock)
        clocks.append(clock)
    return clocks


def _message(program: Program, dynamic: Dynamic, tile: Footprint, other: tuple[int, int, str], row: int) -> str:
    queue, position, where = other
    earlier = dynamic.statics[
        next(
            number
            for number, q, p in zip(dynamic.number, dynamic.queue, dynamic.position, strict=True)
            if q == queue and p == position - 1
        )
    ]
    later = dynamic.statics[dynamic.number[row]]
    place = tile.place.upper() if isinstance(tile.place, str) else f"tensor '{program.tensors[tile.place].name}'"
    return (
        f"Data race between Op1 '{who(program, earlier)}' and Op2 '{who(program, later)}': both access {place} "
        f"{where}, Op2 {'writes' if tile.is_write else 'reads'}, and nothing holds it back until Op1 is complete; "
        f"let it wait for {position} completions of {QUEUES[queue]}"
    )
