"""Instruction: the base of all; a subclass says its operands, limits, meaning and cost, all else is derived here."""

import dataclasses
from dataclasses import dataclass, fields
from functools import cache
from math import prod
from typing import Any, ClassVar, Self, dataclass_transform

from numpy.typing import NDArray

from tvm_neuron.errors import ProgramError
from tvm_neuron.hw import Device
from tvm_neuron.isa.affine import Affine
from tvm_neuron.isa.codec import Reader, Writer
from tvm_neuron.isa.cost import Cost
from tvm_neuron.isa.dtypes import size_bytes
from tvm_neuron.isa.engines import BY_NAME, QUEUES
from tvm_neuron.isa.operand import Kind, ScalarKind, TileKind, read_affine, reads, scalar, updates, write_affine, writes
from tvm_neuron.isa.tile import DramTile, Tile

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Wait:
    """Hold until `queue` has completed at least `min(count, cap)` instructions since the program began."""

    queue: str
    count: Affine
    cap: int

    def __str__(self) -> str:
        return f"{self.queue}>={self.count}^{self.cap}"


@dataclass_transform(frozen_default=True, field_specifiers=(reads, writes, updates, scalar))
class Instruction:
    """One instruction. Every subclass is a frozen dataclass of its operands.

    Class keywords: `opcode` (byte), `engine` (one of `ENGINES`), `mnemonic`.
    On completion an instruction adds one to the counter of its queue; `waits` hold its start.
    """

    opcode: ClassVar[int]
    engine: ClassVar[str]
    mnemonic: ClassVar[str]
    origin: int = 0  # index in the program's table of model operators
    waits: tuple[Wait, ...] = ()

    def __init_subclass__(cls, *, opcode: int, engine: str, mnemonic: str) -> None:
        if not cls.__doc__ or "compute" not in cls.__dict__ or "cost" not in cls.__dict__:
            raise TypeError(f"{cls.__name__} must have a docstring, compute and cost of its own")
        cls.opcode, cls.engine, cls.mnemonic = opcode, BY_NAME[engine].name, mnemonic
        cls.__annotations__ = {**cls.__annotations__, "origin": int, "waits": tuple[Wait, ...]}
        cls.origin, cls.waits = 0, ()
        dataclass(frozen=True)(cls)

    @property
    def queue(self) -> str:
        """The queue whose order it keeps and whose counter it advances."""
        return self.engine

    @property
    def takes_bits(self) -> bool:
        """Whether `compute` takes its sources as they lie in memory, not as float32."""
        return self.engine == "dma"

    @classmethod
    @cache
    def kinds(cls) -> tuple[tuple[str, Kind], ...]:
        """(name, kind) of each operand, in the order of declaration."""
        return tuple((f.name, f.metadata["kind"]) for f in fields(cls) if "kind" in f.metadata)  # type: ignore[arg-type]

    @classmethod
    @cache
    def _in_memory(cls) -> tuple[tuple[str, TileKind | ScalarKind], ...]:
        """Those that may lie in memory."""
        return tuple((name, kind) for name, kind in cls.kinds() if isinstance(kind, (TileKind, ScalarKind)))

    def tiles(self) -> list[tuple[str, TileKind | ScalarKind, Tile | DramTile]]:
        """(name, kind, tile) of every operand that lies in memory."""
        values = ((name, kind, getattr(self, name)) for name, kind in self._in_memory())
        return [(name, kind, value) for name, kind, value in values if isinstance(value, (Tile, DramTile))]

    @property
    def destination(self) -> Tile | DramTile:
        """The tile that `compute` is for: the first that it writes."""
        return self.destinations[0][1]

    @property
    def destinations(self) -> list[tuple[str, Tile | DramTile]]:
        """(operand, tile) of all that it writes."""
        return [(name, tile) for name, kind, tile in self.tiles() if kind.role in ("writes", "updates")]

    def moved_bytes(self, tile: DramTile) -> int:
        """What one transfer moves of a DRAM tensor; from one that positions choose from, no more than is written."""
        return prod(self.destination.shape) * size_bytes(tile.dtype)

    def check(self, device: Device) -> None:
        """Refuses what this instruction's engine can't do; the rules common to all are in `limits`.

        Raises:
            ProgramError: a limit is broken.
        """

    def compute(self, *sources: Array) -> Array:
        """What it writes, in float32, from what it reads: arrays of shape [..., P, *free]."""
        raise NotImplementedError

    def compute_for(self, operand: str, *sources: Array) -> Array:
        """What it writes to `operand`: for the first that it writes, what `compute` gives."""
        return self.compute(*sources)

    def accumulate(self, old: Array | None, summed: tuple[int, ...], *sources: Array) -> Array:
        """`old` (nothing where None) plus `compute` of every step of the leading axes `summed`, added in order.

        Only instructions that update have it. Sources come as they lie in memory, not as float32; the result has the
        leading axes too, the summed ones of size 1.
        """
        raise NotImplementedError

    def cost(self, device: Device) -> Cost:
        """Cycles of its engine."""
        raise NotImplementedError

    def replace(self, **changes: Any) -> Self:
        """A copy with some operands changed."""
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]

    def encode(self, out: Writer) -> None:
        """Appends opcode, origin, waits and operands."""
        out.uint(self.opcode)
        out.uint(self.origin)
        out.uint(len(self.waits))
        for wait in self.waits:
            out.uint(QUEUES.index(wait.queue))
            write_affine(out, wait.count)
            out.uint(wait.cap)
        for name, kind in self.kinds():
            kind.write(out, getattr(self, name))

    @classmethod
    def decode_operands(cls, data: Reader) -> Self:
        """Reads what follows the opcode."""
        origin = data.uint()
        waits = tuple(
            Wait(QUEUES[data.count(len(QUEUES) - 1, "as queue")], read_affine(data), data.uint())
            for _ in range(data.count(2 * len(QUEUES), "waits"))
        )
        operands = {name: kind.read(data) for name, kind in cls.kinds()}
        return cls(**operands, origin=origin, waits=waits)  # type: ignore[call-arg]

    def __str__(self) -> str:
        parts = [self.mnemonic]
        parts += [f"{name}={kind.print(getattr(self, name))}" for name, kind in self.kinds()]
        parts += [f"wait={wait}" for wait in self.waits]
        return " ".join(parts) + f" origin={self.origin}"

    @classmethod
    def parse_operands(cls, words: list[str]) -> Self:
        """Reads the words after the mnemonic.

        Raises:
            ProgramError: an operand is missing, unknown or unreadable.
        """
        kinds = dict(cls.kinds())
        values: dict[str, Any] = {}
        waits: list[Wait] = []
        for word in words:
            name, _, text = word.partition("=")
            try:
                if name == "wait":
                    queue, _, rest = text.partition(">=")
                    count, _, cap = rest.rpartition("^")
                    waits.append(Wait(queue, Affine.parse(count), int(cap)))
                elif name == "origin":
                    values[name] = int(text)
                elif name in kinds:
                    values[name] = kinds[name].parse(text)
                else:
                    raise ValueError(f"{cls.mnemonic} has no operand '{name}'; it has {', '.join(kinds)}")
            except ValueError as error:
                raise ProgramError(f"{cls.mnemonic}.{name}: {error}") from error
        missing = sorted(set(kinds) - set(values))
        if missing:
            raise ProgramError(f"{cls.mnemonic}: operand {', '.join(missing)} is missing")
        return cls(**values, waits=tuple(waits))  # type: ignore[call-arg]
