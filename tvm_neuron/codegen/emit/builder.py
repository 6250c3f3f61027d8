"""Builder: collects a program: its loops, DRAM tensors, vectors kept in SBUF, and rings of short-lived memory."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.allocation.layouts import ALIGNMENT_BYTES, aligned
from tvm_neuron.allocation.storage import OnChip
from tvm_neuron.codegen.emit.factored import Factored
from tvm_neuron.codegen.emit.holder import Holder
from tvm_neuron.codegen.emit.vectors import Vectors
from tvm_neuron.codegen.emit.weights_memory import WeightsMemory
from tvm_neuron.errors import at_operator
from tvm_neuron.hw import Device
from tvm_neuron.isa import Affine, GpsimdMemset, Instruction, Memset, Tile, affine
from tvm_neuron.isa.dtypes import DTYPES
from tvm_neuron.program import DramTensor, Loop, Node, Origin

Loops = Sequence[tuple[int, int]]  # (depth, count) of the loops around an instruction that tell tiles apart


class Ring(Holder):
    """A part of SBUF that is handed out in order and again from its start; the waits keep users apart."""

    def __init__(self, base: int, capacity: int) -> None:
        super().__init__()
        self.base = base
        self.capacity = capacity
        self.next = 0
        self.used = 0  # bytes that were ever handed out

    def take(self, size: int) -> int:
        """Byte offset of the next `size` bytes."""
        assert size <= self.capacity, f"{size} bytes asked of a ring of {self.capacity}"
        at = aligned(self.next)
        if at + size > self.capacity:
            at = 0
        self.next = at + size
        self.used = max(self.used, self.next)
        self.drop(self.base + at, self.base + self.next)
        return self.base + at


class Builder:
    """What the emitters of all kernel families share."""

    def __init__(
        self, device: Device, vectors: Vectors, resident: Ring, scratch: Ring, reduced: Ring, positions: Ring,
        masks: Ring, diagonals: Ring, scaled: Ring, weights: WeightsMemory, factors: Ring,
    ) -> None:  # fmt: skip
        self.device = device
        self.resident = resident  # weights that stay in SBUF between runs
        self.scratch = scratch  # temporaries of expressions
        self.reduced = reduced  # values of reductions on their way into an expression
        self.positions = positions  # constants along free axes of the kernel that runs and of the next
        self.masks = masks  # with which weights that are mostly zeros are made just before use
        self.diagonals = diagonals  # such weights
        self.scaled = scaled  # weights times values known only at run time
        self.weights = weights
        self.factors = factors  # what weights that are mostly zeros are made of where POOL has time
        self.factored: dict[int, tuple[Factored, ...]] = {}  # the tiles side by side in such tensors of weights
        self.tensors: list[DramTensor] = []
        self.arrays: dict[str, NDArray[Any]] = {}
        self.repeats: dict[str, int] = {}  # of those, where it is more than one
        self._serials: dict[str, int] = {}
        self._alike: dict[tuple[tuple[int, ...], str, int], list[int]] = {}
        self.origins: dict[Origin, int] = {}
        self.origin = 0
        self.prologue: list[Node] = []  # runs once, when the program is loaded
        self._levels: list[list[Node]] = [[]]
        self._psum_tiles = 0
        self._psum_banks = device.psum_banks  # those around which tiles go
        self.vectors = vectors

    @property
    def body(self) -> list[Node]:
        """What was emitted at the outermost level."""
        return self._levels[0]

    @contextmanager
    def working_for(self, origin: Origin) -> Iterator[None]:
        """Instructions emitted inside come from this model operator."""
        before, self.origin = self.origin, self.origins.setdefault(origin, len(self.origins))
        with at_operator(origin.name):
            yield
        self.origin = before

    @contextmanager
    def loop(self, count: int) -> Iterator[int | None]:
        """A loop around what is emitted inside; gives its depth, or None where one iteration needs no loop."""
        if count == 1:
            yield None
            return
        self._levels.append([])
        yield len(self._levels) - 2
        self._levels[-2].append(Loop(count, tuple(self._levels.pop())))

    @contextmanager
    def loading_once(self) -> Iterator[None]:
        """What is emitted inside runs once, before the first run."""
        body, self._levels = self._levels, [self.prologue]
        yield
        self._levels = body

    def emit(self, instruction: Instruction) -> None:
        """Appends the instruction, marked with the current origin; GpSimd fills SBUF, which has nothing else to do."""
        if isinstance(instruction, Memset) and instruction.result.space == "sbuf" and self.device.gpsimd_clock_hz:
            instruction = GpsimdMemset(result=instruction.result, value=instruction.value)
        self._levels[-1].append(instruction.replace(origin=self.origin))

    def add_tensor(self, tensor: DramTensor) -> int:
        """A new DRAM tensor's index."""
        name = tensor.name
        while name in self._serials:  # a count for each name: unrolled networks use one a thousand times
            self._serials[tensor.name] += 1
            name = f"{tensor.name}.{self._serials[tensor.name]}"
        self._serials[name] = 1
        self.tensors.append(DramTensor(name, tensor.kind, tensor.shape, tensor.dtype))
        return len(self.tensors) - 1

    def add_weight(self, name: str, array: NDArray[Any], dtype: str, repeats: int = 1) -> int:
        """A weight's index in the tensor table; equal ones (as each step of an unrolled network has) are kept once.

        Each value of the model is `repeats` times in it.
        """
        values = np.ascontiguousarray(array, DTYPES[dtype]).reshape(array.shape)
        alike = self._alike.setdefault((array.shape, dtype, crc32(_bytes(values).data)), [])
        for index in alike:
            if np.array_equal(_bytes(self.arrays[self.tensors[index].name]), _bytes(values)):
                return index
        alike.append(self.add_tensor(DramTensor(name, "weight", array.shape, dtype)))
        self.arrays[self.tensors[-1].name] = values
        if repeats > 1:
            self.repeats[self.tensors[-1].name] = repeats
        return alike[-1]

    def leave_banks(self, tensors: Iterable[OnChip]) -> None:
        """The last banks of PSUM to tensors that lie there."""
        bank = self.device.psum_bank_bytes
        self._psum_banks = min((tensor.offset // bank for tensor in tensors), default=self._psum_banks)

    def psum_tile(self, partitions: int, dims: tuple[tuple[int, int], ...], loops: Loops) -> Tile:
        """A PSUM bank for each iteration of `loops`, one after the other around all that no tensor has."""
        bank, banks = self.device.psum_bank_bytes, self._psum_banks
        phase = self._psum_tiles % banks * bank
        self._psum_tiles += int(np.prod([count for _, count in loops], dtype=np.int64))
        offset = affine(0, _linear_terms(loops, bank), phase, banks * bank)
        return Tile("psum", "float32", Affine(), partitions, offset, dims)

    def vector(self, values: NDArray[Any], start: int, size: int, depth: int | None) -> Tile:
        """[size, 1] float32 constants: `values[start + 128 * i + p]` in iteration i of a loop."""
        at = self.vectors.find(values, start)
        return Tile("sbuf", "float32", Affine(), size, affine(at, [] if depth is None else [(depth, 4)]), ((1, 1),))


class Scratch:
    """Temporary float32 tiles of one kernel's tiles: each iteration takes the next `group_bytes` of the ring.

    The first one takes those behind what was taken last, on which engines may be at work still.
    """

    def __init__(self, ring: Ring, group_bytes: int, loops: Loops) -> None:
        group = max(group_bytes, ALIGNMENT_BYTES)
        assert group <= ring.capacity, f"temporary tiles of {group} bytes exceed the {ring.capacity} there are for them"
        self.ring = ring
        self.wrap = ring.capacity // group * group
        self.terms = _linear_terms(loops, group)
        self.used = -(-ring.next // group) * group % self.wrap
        ring.next = self.used + group * prod(count for _, count in loops)

    def tile(self, partitions: int, dims: tuple[tuple[int, int], ...]) -> Tile:
        """The next bytes as a contiguous tile."""
        offset = affine(self.ring.base, self.terms, self.used, self.wrap)
        self.used += aligned(4 * prod(count for _, count in dims))
        return Tile("sbuf", "float32", Affine(), partitions, offset, dims)


def _bytes(values: NDArray[Any]) -> NDArray[np.uint8]:
    return values.reshape(-1).view(np.uint8)


def _linear_terms(loops: Loops, step: int) -> list[tuple[int, int]]:
    terms = []
    for depth, count in reversed(loops):
        terms.append((depth, step))
        step *= count
    return terms
