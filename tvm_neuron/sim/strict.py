"""strict: runs the engines' streams side by side, each as early or as late as its waits allow.

Compute queues run ahead as far as they may, in an order that `seed` varies. A DMA transfer reads and writes as late as
it may: only when every compute queue is held up, and then only the transfer that one of them waits for.
"""

from collections.abc import Sequence
from random import Random

from tvm_neuron.errors import ProgramError
from tvm_neuron.isa.engines import QUEUES, of_dma
from tvm_neuron.program import Program
from tvm_neuron.program.dynamic import expand, who
from tvm_neuron.sim.execute import execute
from tvm_neuron.sim.memory import Memory
from tvm_neuron.sim.statement import make_statements

_COMPUTE = tuple(code for code, queue in enumerate(QUEUES) if not of_dma(queue))


class Streams:
    """The queues of a program, how far each has come, and what the next of each waits for."""

    def __init__(self, program: Program, memory: Memory) -> None:
        dynamic = expand(program)
        self.program = program
        self.memory = memory
        self.statics = dynamic.statics
        self.statements = [
            make_statements(instruction, (), counts, memory.pitch_bytes)
            for instruction, counts in zip(dynamic.statics, dynamic.counts, strict=True)
        ]
        self.number = dynamic.number.tolist()
        self.index = dynamic.index.tolist()
        self.waits = dynamic.waits()
        self.streams: list[list[int]] = [[] for _ in QUEUES]
        for row, queue in enumerate(dynamic.queue.tolist()):
            self.streams[queue].append(row)
        self.done = [0] * len(QUEUES)

    def is_over(self, queue: int) -> bool:
        """Whether the queue has run everything."""
        return self.done[queue] == len(self.streams[queue])

    def missing(self, queue: int) -> list[tuple[int, int]]:
        """(queue, completions) that the next instruction of `queue` still waits for."""
        row = self.streams[queue][self.done[queue]]
        return [(other, count) for other, count in self.waits[row] if self.done[other] < count]

    def is_ready(self, queue: int) -> bool:
        """Whether the queue can run its next instruction."""
        return not self.is_over(queue) and not self.missing(queue)

    def run_one(self, queue: int) -> None:
        """Runs the queue's next instruction."""
        row = self.streams[queue][self.done[queue]]
        for statement in self.statements[self.number[row]]:
            execute(statement, self.memory, self.index[row])
        self.done[queue] += 1

    def name_next(self, queue: int) -> str:
        """The queue's next instruction, for messages."""
        return who(self.program, self.statics[self.number[self.streams[queue][self.done[queue]]]])


def run_strict(program: Program, memory: Memory, seed: int = 0) -> None:
    """Runs `program` on `memory` in an order as bad as its waits allow.

    Raises:
        ProgramError: some queues wait for each other, or for completions that never come.
    """
    streams = Streams(program, memory)
    random = Random(seed)
    while True:
        _run_compute(streams, random)
        waiting = [queue for queue in range(len(QUEUES)) if not streams.is_over(queue)]
        if not waiting:
            return
        transfer = _transfer_to_finish(streams, waiting, random)
        if transfer is None:
            raise ProgramError(_deadlock(streams, waiting))
        streams.run_one(transfer)


def _run_compute(streams: Streams, random: Random) -> None:
    """Lets the compute queues run, each as far as it can, until all are held up."""
    is_moving = True
    while is_moving:
        is_moving = False
        for queue in random.sample(_COMPUTE, len(_COMPUTE)):
            while streams.is_ready(queue):
                streams.run_one(queue)
                is_moving = True


def _transfer_to_finish(streams: Streams, waiting: Sequence[int], random: Random) -> int | None:
    """A DMA queue whose next transfer can be put off no longer: a compute queue waits for it, itself or by others."""
    wanted = [queue for queue in waiting if queue in _COMPUTE]
    seen = set(wanted)
    while wanted:
        for other, _ in streams.missing(wanted.pop()):
            if other not in seen and not streams.is_over(other):
                if streams.is_ready(other):
                    return other
                seen.add(other)
                wanted.append(other)
    # Nobody computes any more: what is left finishes in any order, the last queue first to be unlike the program's.
    ready = [queue for queue in waiting if queue not in _COMPUTE and streams.is_ready(queue)]
    return random.choice(ready) if ready else None


def _deadlock(streams: Streams, waiting: Sequence[int]) -> str:
    lines = []
    for queue in waiting:
        for other, count in streams.missing(queue):
            state = "which has ended" if streams.is_over(other) else f"whose next is '{streams.name_next(other)}'"
            lines.append(
                f"'{streams.name_next(queue)}' on {QUEUES[queue]} waits for {count} completions of {QUEUES[other]}, "
                f"{state} after {streams.done[other]}"
            )
    return "Deadlock: " + "; ".join(lines) + ": a wait counts more than comes before it in program order"
