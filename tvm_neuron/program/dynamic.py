"""Dynamic instructions: every instruction as often as it runs, as arrays in program order."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.errors import ProgramError
from tvm_neuron.isa import QUEUES, Affine, Instruction
from tvm_neuron.program.program import Loop, Node, Program

Ints = NDArray[np.int64]
# A program that runs more instructions than this is refused where each has to be looked at. A few bytes of a file can
# ask for so many, for which the clock takes 2 GB and a quarter of a minute; networks run some ten thousand.
MOST_INSTRUCTIONS = 5_000_000


def who(program: Program, instruction: Instruction) -> str:
    """How messages name an instruction: mnemonic and model operator."""
    names = program.origins
    known = 0 <= instruction.origin < len(names)
    return f"{instruction.mnemonic} of {names[instruction.origin].name if known else 'unknown operator'}"


@dataclass(frozen=True, slots=True)
class Dynamic:
    """Dynamic instruction i is `statics[number[i]]` in iteration `index[i]`, the `position[i]`-th of its queue."""

    statics: tuple[Instruction, ...]
    counts: tuple[tuple[int, ...], ...]  # of the loops around each static instruction
    number: NDArray[np.int32]
    index: NDArray[np.int32]  # [dynamic instructions, deepest loop]
    queue: NDArray[np.int8]  # place in QUEUES
    position: Ints

    def __len__(self) -> int:
        return len(self.number)

    def rows(self) -> list[NDArray[np.int64]]:
        """For each static instruction its dynamic ones, in order."""
        order = np.argsort(self.number, kind="stable")
        ends = np.cumsum(np.bincount(self.number, minlength=len(self.statics))).tolist()
        return [order[first:end] for first, end in pairwise((0, *ends))]

    def needs(self) -> tuple[Ints, Ints, Ints]:
        """Of all waits the dynamic instruction, the queue that it waits for, and the completions needed of it."""
        often: list[tuple[Ints, int, Ints]] = []
        once: list[tuple[int, int, int]] = []  # as most run: too little for an array each
        codes = {queue: code for code, queue in enumerate(QUEUES)}
        for rows, instruction in zip(self.rows(), self.statics, strict=True):
            for wait in instruction.waits:
                if len(rows) != 1:
                    counts = np.minimum(affine_at(wait.count, self.index[rows]), wait.cap)
                    often.append((rows, codes[wait.queue], counts))
                else:
                    index = self.index[rows[0]].tolist() if wait.count.terms else ()
                    once.append((rows[0], codes[wait.queue], min(wait.count.at(index), wait.cap)))
        told = np.array(once, np.int64).reshape(-1, 3)
        queues = np.repeat(np.array([queue for _, queue, _ in often], np.int64), [len(rows) for rows, *_ in often])
        return (
            np.concatenate([told[:, 0], *(rows for rows, *_ in often)]),
            np.concatenate([told[:, 1], queues]),
            np.concatenate([told[:, 2], *(counts for *_, counts in often)]),
        )

    def waits(self) -> list[list[tuple[int, int]]]:
        """For each dynamic instruction what it waits for: queues, and completions needed of each."""
        found: list[list[tuple[int, int]]] = [[] for _ in range(len(self))]
        for row, queue, count in zip(*(each.tolist() for each in self.needs()), strict=True):
            found[row].append((queue, count))
        return found


def affine_at(affine: Affine, index: NDArray[np.int32]) -> Ints:
    """`affine.at` for every row of `index`."""
    value = np.full(len(index), affine.phase, np.int64)
    for depth, step in affine.terms:
        value += step * index[:, depth].astype(np.int64)
    if affine.wrap:
        value %= affine.wrap
    return value + affine.base


def expand(program: Program) -> Dynamic:
    """All dynamic instructions of `program`.

    Raises:
        ProgramError: there are more than `MOST_INSTRUCTIONS`.
    """
    listed = list(program.instructions())
    total = sum(_times(counts) for counts, _ in listed)
    if total > MOST_INSTRUCTIONS:
        raise ProgramError(f"the program runs {total} instructions; at most {MOST_INSTRUCTIONS} can be looked at")
    depth = max((len(counts) for counts, _ in listed), default=0)
    number, index = _expand(program.body, 0, depth, [0])
    queue_of = np.array([QUEUES.index(instruction.queue) for _, instruction in listed], np.int8)
    queue = queue_of[number]
    position = np.zeros(len(number), np.int64)
    for code in range(len(QUEUES)):
        mine = queue == code
        position[mine] = np.arange(np.count_nonzero(mine))
    statics = tuple(instruction for _, instruction in listed)
    return Dynamic(statics, tuple(counts for counts, _ in listed), number, index, queue, position)


def _times(counts: Sequence[int]) -> int:
    times = 1
    for count in counts:
        times *= count
    return times


def _expand(
    body: tuple[Node, ...], depth: int, width: int, next_number: list[int]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    numbers: list[NDArray[np.int32]] = []
    indices: list[NDArray[np.int32]] = []
    for are_loops, nodes in groupby(body, lambda node: isinstance(node, Loop)):
        if not are_loops:
            first, next_number[0] = next_number[0], next_number[0] + sum(1 for _ in nodes)
            numbers.append(np.arange(first, next_number[0], dtype=np.int32))
            indices.append(np.zeros((len(numbers[-1]), width), np.int32))
            continue
        for node in nodes:
            assert isinstance(node, Loop)
            number, index = _expand(node.body, depth + 1, width, next_number)
            inside = len(number)
            number, index = np.tile(number, node.count), np.tile(index, (node.count, 1))
            index[:, depth] = np.repeat(np.arange(node.count, dtype=np.int32), inside)
            numbers.append(number)
            indices.append(index)
    if not numbers:
        return np.zeros(0, np.int32), np.zeros((0, width), np.int32)
    return np.concatenate(numbers), np.concatenate(indices)
