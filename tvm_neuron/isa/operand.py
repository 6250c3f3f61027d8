"""Operand kinds: each knows its bytes, its text and its role, and nothing else in the project does."""

import struct
from dataclasses import dataclass, field
from typing import Any

from tvm_neuron.errors import NeffError
from tvm_neuron.isa.affine import Affine
from tvm_neuron.isa.codec import Reader, Writer
from tvm_neuron.isa.dtypes import CODES, FIRST_CODES
from tvm_neuron.isa.tile import MAX_DRAM_DIMS, DramTile, Tile, parse_tile

_SPACES = ("sbuf", "psum", "dram", "skewed")  # as encoded: what is skewed lies in SBUF
_PLACES = [
    (space, dtype) for codes in (CODES[:FIRST_CODES], CODES[FIRST_CODES:]) for space in _SPACES for dtype in codes
]
MAX_LOOP_DEPTH = 16


def write_affine(out: Writer, value: Affine) -> None:
    """Bytes of an Affine."""
    out.sint(value.base)
    out.uint(len(value.terms) << 1 | (value.wrap > 0))
    for depth, step in value.terms:
        out.uint(depth)
        out.sint(step)
    if value.wrap:
        out.sint(value.phase)
        out.uint(value.wrap)


def read_affine(data: Reader) -> Affine:
    """The inverse of `write_affine`."""
    base = data.sint()
    head = data.count(2 * MAX_LOOP_DEPTH + 1, "loop terms (twice)")
    terms = tuple((data.count(MAX_LOOP_DEPTH - 1, "as loop depth"), data.sint()) for _ in range(head >> 1))
    phase, wrap = (data.sint(), data.uint()) if head & 1 else (0, 0)
    return Affine(base, terms, phase, wrap)


class Kind:
    """One kind of operand. `role` is "reads", "writes", "updates" or "" (an immediate)."""

    role = ""
    optional = False

    def write(self, out: Writer, value: Any) -> None:
        """Appends the operand's bytes."""
        raise NotImplementedError

    def read(self, data: Reader) -> Any:
        """Takes the operand's bytes off `data`."""
        raise NotImplementedError

    def parse(self, text: str) -> Any:
        """Reads the operand's text."""
        raise NotImplementedError

    def print(self, value: Any) -> str:
        """The operand's text, without blanks."""
        return str(value)

    def describe(self) -> str:
        """One phrase for the manual."""
        raise NotImplementedError


@dataclass(frozen=True)
class TileKind(Kind):
    """A tile in memory; `unless` names the immediate that turns an update into a plain write."""

    role: str = "reads"
    unless: str = ""
    spaces: tuple[str, ...] = ("sbuf", "psum")

    def write(self, out: Writer, value: Tile | DramTile) -> None:
        space = "dram" if isinstance(value, DramTile) else "skewed" if value.skew else value.space
        out.uint(_PLACES.index((space, value.dtype)))
        if isinstance(value, DramTile):
            out.uint(value.tensor)
        else:
            write_affine(out, value.partition)
            out.uint(value.partitions)
            if value.skew:
                out.uint(value.skew)
        write_affine(out, value.offset)
        out.uint(len(value.dims))
        for step, count in value.dims:
            out.uint(step)
            out.uint(count)

    def read(self, data: Reader) -> Tile | DramTile:
        space, dtype = _PLACES[data.count(len(_PLACES) - 1, "as space and dtype")]
        if space == "dram":
            tensor = data.uint()
            offset = read_affine(data)
            return DramTile(tensor, dtype, offset, self._read_dims(data))
        partition = read_affine(data)
        partitions = data.uint()
        skew = data.uint() if space == "skewed" else 0
        offset = read_affine(data)
        memory = "sbuf" if space == "skewed" else space
        return Tile(memory, dtype, partition, partitions, offset, self._read_dims(data), skew)

    def _read_dims(self, data: Reader) -> tuple[tuple[int, int], ...]:
        return tuple((data.uint(), data.uint()) for _ in range(data.count(MAX_DRAM_DIMS, "dimensions")))

    def parse(self, text: str) -> Tile | DramTile:
        return parse_tile(text)

    def describe(self) -> str:
        return f"{self.role} {' or '.join(s.upper() for s in self.spaces)}"


@dataclass(frozen=True)
class ScalarKind(Kind):
    """A float32 immediate, or a tile [P, 1] that gives each partition its own."""

    role: str = "reads"

    def write(self, out: Writer, value: float | Tile) -> None:
        out.uint(isinstance(value, Tile))
        if isinstance(value, Tile):
            TileKind().write(out, value)
        else:
            out.float(value)

    def read(self, data: Reader) -> float | Tile | DramTile:
        return TileKind().read(data) if data.count(1, "as scalar form") else data.float()

    def parse(self, text: str) -> float | Tile | DramTile:
        return parse_tile(text) if "{" in text else struct.unpack("<f", struct.pack("<f", float(text)))[0]

    def print(self, value: float | Tile) -> str:
        return str(value) if isinstance(value, Tile) else repr(float(value))

    def describe(self) -> str:
        return "float32 or [P, 1] tile"


@dataclass(frozen=True)
class EnumKind(Kind):
    """One of some names."""

    names: tuple[str, ...] = ()

    def write(self, out: Writer, value: str) -> None:
        out.uint(self.names.index(value))

    def read(self, data: Reader) -> str:
        return self.names[data.count(len(self.names) - 1, "as choice")]

    def parse(self, text: str) -> str:
        if text not in self.names:
            raise ValueError(f"'{text}' is none of {', '.join(self.names)}")
        return text

    def describe(self) -> str:
        return "one of " + ", ".join(self.names)


@dataclass(frozen=True)
class UintKind(Kind):
    """A whole number in [low, high]."""

    low: int = 0
    high: int = 0xFFFFFFFF

    def write(self, out: Writer, value: int) -> None:
        out.uint(value)

    def read(self, data: Reader) -> int:
        value = data.uint()
        if not self.low <= value <= self.high:
            raise NeffError(f"number {value} at byte {data.position} is outside [{self.low}, {self.high}]")
        return value

    def parse(self, text: str) -> int:
        return int(text)

    def describe(self) -> str:
        return f"{self.low} to {self.high}"


@dataclass(frozen=True)
class IntsKind(Kind):
    """A list of whole numbers, at most `most` of them."""

    most: int = 1

    def write(self, out: Writer, value: tuple[int, ...]) -> None:
        out.uint(len(value))
        for number in value:
            out.sint(number)

    def read(self, data: Reader) -> tuple[int, ...]:
        return tuple(data.sint() for _ in range(data.count(self.most, "numbers")))

    def parse(self, text: str) -> tuple[int, ...]:
        return tuple(int(part) for part in text.split(",") if part)

    def print(self, value: tuple[int, ...]) -> str:
        return ",".join(map(str, value))

    def describe(self) -> str:
        return f"at most {self.most} whole numbers"


@dataclass(frozen=True)
class FirstKind(Kind):
    """`never`, or the depths of the loops in whose first iteration it holds (`always` for none: unconditionally)."""

    def write(self, out: Writer, value: tuple[int, ...] | None) -> None:
        out.uint(0 if value is None else len(value) + 1)
        for depth in value or ():
            out.uint(depth)

    def read(self, data: Reader) -> tuple[int, ...] | None:
        size = data.count(MAX_LOOP_DEPTH + 1, "loops")
        return tuple(data.count(MAX_LOOP_DEPTH - 1, "as loop depth") for _ in range(size - 1)) if size else None

    def parse(self, text: str) -> tuple[int, ...] | None:
        if text in ("never", "always"):
            return None if text == "never" else ()
        return tuple(int(part.removeprefix("i")) for part in text.split(","))

    def print(self, value: tuple[int, ...] | None) -> str:
        return "never" if value is None else ",".join(f"i{d}" for d in value) or "always"

    def describe(self) -> str:
        return "never, always, or loops: in the first iteration of all of them"


def is_first(value: tuple[int, ...] | None, indices: tuple[int, ...]) -> bool:
    """Whether a FirstKind operand holds in iteration `indices`."""
    return value is not None and all(indices[depth] == 0 for depth in value)


def _operand(kind: Kind, **keywords: Any) -> Any:
    return field(metadata={"kind": kind}, **keywords)


def reads(*spaces: str) -> Any:
    """A tile that is read."""
    return _operand(TileKind("reads", "", spaces or ("sbuf", "psum")))


def writes(*spaces: str) -> Any:
    """A tile that is written whole."""
    return _operand(TileKind("writes", "", spaces or ("sbuf", "psum")))


def updates(*spaces: str, unless: str) -> Any:
    """A tile that is read and written, only written where the immediate `unless` holds."""
    return _operand(TileKind("updates", unless, spaces or ("psum",)))


def scalar() -> Any:
    """A float32 immediate or a tile [P, 1]."""
    return _operand(ScalarKind())


def choice(names: tuple[str, ...]) -> Any:
    """One of `names`."""
    return _operand(EnumKind(names=names))


def uint(low: int, high: int) -> Any:
    """A whole number in [low, high]."""
    return _operand(UintKind(low=low, high=high))


def ints(most: int) -> Any:
    """A list of whole numbers, at most `most` of them."""
    return _operand(IntsKind(most=most))


def first() -> Any:
    """A condition on loops; see FirstKind."""
    return _operand(FirstKind())
