"""Waits that make a hand-written program safe: each instruction waits for all that comes before it."""

from collections.abc import Callable
from random import Random

from tvm_neuron.isa import QUEUES, Instruction, Wait, affine
from tvm_neuron.program import Loop, Node, Program

Counts = dict[str, int]


def serialise(program: Program) -> Program:
    """The program with a wait of every instruction for all earlier ones on other queues."""
    return program.with_body(_serialise(program.body, dict.fromkeys(QUEUES, 0), [], _queues(program.body))[0])


def drop_waits(program: Program, mnemonic: str, origin: int, queue: str) -> Program:
    """The program without the waits for `queue` of the instructions named."""

    def change(instruction: Instruction) -> Instruction:
        if instruction.mnemonic != mnemonic or instruction.origin != origin:
            return instruction
        return instruction.replace(waits=tuple(wait for wait in instruction.waits if wait.queue != queue))

    return program.with_body(_map(program.body, change))


def drop_some_waits(program: Program, random: Random, kept: float = 0.9) -> Program:
    """The program with that share of its waits, at random."""

    def change(instruction: Instruction) -> Instruction:
        return instruction.replace(waits=tuple(wait for wait in instruction.waits if random.random() < kept))

    return program.with_body(_map(program.body, change))


def _map(body: tuple[Node, ...], change: Callable[[Instruction], Instruction]) -> tuple[Node, ...]:
    return tuple(Loop(n.count, _map(n.body, change)) if isinstance(n, Loop) else change(n) for n in body)


def _queues(body: tuple[Node, ...]) -> Counts:
    """Instructions of each queue in one run of `body`."""
    total = dict.fromkeys(QUEUES, 0)
    for node in body:
        if isinstance(node, Loop):
            for queue, count in _queues(node.body).items():
                total[queue] += count * node.count
        else:
            total[node.queue] += 1
    return total


def _serialise(
    body: tuple[Node, ...], before: Counts, loops: list[Counts], whole: Counts
) -> tuple[tuple[Node, ...], Counts]:
    """`before` have run when `body` starts for the first time, `loops[d]` run in each iteration of loop d around it."""
    nodes: list[Node] = []
    before = dict(before)
    for node in body:
        inside = _queues((node,))
        if isinstance(node, Loop):
            turn = _queues(node.body)
            nodes.append(Loop(node.count, _serialise(node.body, before, [*loops, turn], whole)[0]))
        else:
            waits = []
            for queue in QUEUES:
                if queue != node.queue and whole[queue]:
                    terms = [(depth, turn[queue]) for depth, turn in enumerate(loops)]
                    waits.append(Wait(queue, affine(before[queue], terms), whole[queue]))
            nodes.append(node.replace(waits=tuple(waits)))
        for queue, count in inside.items():
            before[queue] += count
    return tuple(nodes), before
