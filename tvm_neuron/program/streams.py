"""Engine streams: what each queue runs of a program, and the way back.

The loops and instructions of a body are numbered in the order in which they stand in its text. The stream of a queue
holds the queue's instructions and the loops around them, under those numbers; loops without any are left out. Loop
depths are the same as in the body, so addresses stay valid.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, count, groupby

from tvm_neuron.errors import ProgramError
from tvm_neuron.isa import QUEUES, Instruction
from tvm_neuron.program.program import Loop, Node


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction of a stream and its number in the program."""

    number: int
    instruction: Instruction


@dataclass(frozen=True, slots=True)
class StreamLoop:
    """The part of a loop that one queue runs; streams that share the loop share its number."""

    number: int
    count: int
    body: "Stream"


Stream = tuple[Step | StreamLoop, ...]


def split(body: tuple[Node, ...]) -> dict[str, Stream]:
    """The stream of every queue that has instructions, in the order of `QUEUES`.

    Raises:
        ProgramError: a loop holds no instruction.
    """
    streams = _split(body, count())
    return {queue: streams[queue] for queue in QUEUES if queue in streams}


def _split(body: tuple[Node, ...], numbers: Iterator[int]) -> dict[str, Stream]:
    streams: dict[str, list[Step | StreamLoop]] = {}
    for node in body:
        number = next(numbers)
        if isinstance(node, Instruction):
            streams.setdefault(node.queue, []).append(Step(number, node))
            continue
        parts = _split(node.body, numbers)
        if not parts:
            raise ProgramError(f"loop number {number}, run {node.count} times, holds no instruction: remove it")
        for queue, part in parts.items():
            streams.setdefault(queue, []).append(StreamLoop(number, node.count, part))
    return {queue: tuple(stream) for queue, stream in streams.items()}


def join(streams: Mapping[str, Stream]) -> tuple[Node, ...]:
    """The body that `split` took apart.

    Raises:
        ProgramError: the streams are not parts of one program: a number is missing, doubled, or means two things.
    """
    return _join(list(streams.values()), count())


def _join(parts: list[Stream], numbers: Iterator[int]) -> tuple[Node, ...]:
    body: list[Node] = []
    for number, group in groupby(sorted(chain(*parts), key=_number), _number):
        wanted = next(numbers)
        if number != wanted:
            raise ProgramError(
                f"engine streams don't fit together: number {wanted} is missing, number {number} is there"
            )
        same = list(group)
        loops = [node for node in same if isinstance(node, StreamLoop)]
        steps = [node for node in same if isinstance(node, Step)]
        if len(steps) + bool(loops) != 1 or any(loop.count != loops[0].count for loop in loops):
            raise ProgramError(f"engine streams don't fit together: number {number} means different things in them")
        if steps:
            body.append(steps[0].instruction)
        else:
            body.append(Loop(loops[0].count, _join([loop.body for loop in loops], numbers)))
    return tuple(body)


def _number(node: Step | StreamLoop) -> int:
    return node.number
