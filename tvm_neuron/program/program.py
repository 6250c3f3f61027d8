"""Program: a tree of loops and instructions over one table of DRAM tensors, in the order that defines its meaning."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from tvm_neuron.isa import Instruction
from tvm_neuron.isa.dtypes import size_bytes


@dataclass(frozen=True, slots=True)
class DramTensor:
    """One tensor in device memory. `kind` is "input", "output", "weight" or "scratch"; dtype is that of the memory."""

    name: str
    kind: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def elems(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def size_bytes(self) -> int:
        """Bytes in device memory."""
        return self.elems * size_bytes(self.dtype)


@dataclass(frozen=True, slots=True)
class Origin:
    """The model operator that instructions come from: its name in the model and its type."""

    name: str
    op: str

    def __str__(self) -> str:
        return f"{self.op} '{self.name}'" if self.name else self.op


@dataclass(frozen=True, slots=True)
class Loop:
    """Runs `body` `count` times. Loops nest; addresses refer to a loop by its depth, the outermost being 0."""

    count: int
    body: tuple["Node", ...]


Node = Loop | Instruction


@dataclass(frozen=True, slots=True)
class Program:
    """What one NeuronCore runs.

    The order of `body` is the meaning: running it one instruction after the other gives the results. The engines run
    it side by side, each taking its own instructions in that order; waits keep the meaning (see `race`).
    """

    tensors: tuple[DramTensor, ...]
    origins: tuple[Origin, ...]
    body: tuple[Node, ...]

    def instructions(self) -> Iterator[tuple[tuple[int, ...], Instruction]]:
        """(loop counts around it, instruction) for every instruction, each once, in order."""
        return walk(self.body)

    def with_body(self, body: tuple[Node, ...]) -> "Program":
        """The same tables around another body."""
        return replace(self, body=body)


def walk(body: tuple[Node, ...], counts: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Instruction]]:
    """(loop counts, instruction) for every instruction below `body`, in order."""
    for node in body:
        if isinstance(node, Loop):
            yield from walk(node.body, (*counts, node.count))
        else:
            yield counts, node


def unroll(body: tuple[Node, ...], indices: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Instruction]]:
    """(loop indices, instruction) for every instruction as often as it runs, in order."""
    for node in body:
        if isinstance(node, Loop):
            for index in range(node.count):
                yield from unroll(node.body, (*indices, index))
        else:
            yield indices, node
