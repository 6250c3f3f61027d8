"""Random operands, made from the operand kinds, and with them random instructions of every class."""

import struct
from typing import Any

from hypothesis import strategies as st

from tvm_neuron.isa import QUEUES, Affine, DramTile, Instruction, Tile, Wait, affine
from tvm_neuron.isa.dtypes import CODES
from tvm_neuron.isa.operand import EnumKind, FirstKind, IntsKind, Kind, ScalarKind, TileKind, UintKind

_DEPTHS = st.integers(0, 15)
_DIMS = st.lists(st.tuples(st.integers(0, 9999), st.integers(1, 9999)), max_size=5).map(tuple)


@st.composite
def affines(draw: st.DrawFn) -> Affine:
    terms = draw(st.dictionaries(_DEPTHS, st.integers(-(10**6), 10**6), max_size=4))
    wrap = draw(st.integers(0, 2**31))
    phase = draw(st.integers(-(10**6), 10**6)) if wrap else 0
    return affine(draw(st.integers(-(10**6), 2**40)), terms.items(), phase, wrap)


def sram_tiles(spaces: tuple[str, ...] = ("sbuf", "psum")) -> st.SearchStrategy[Tile]:
    def tiles(space: str) -> st.SearchStrategy[Tile]:
        skew = st.integers(0, 9999) if space == "sbuf" else st.just(0)
        return st.builds(
            Tile, st.just(space), st.sampled_from(CODES), affines(), st.integers(1, 128), affines(), _DIMS, skew
        )

    return st.sampled_from(spaces).flatmap(tiles)


_DRAM_TILES = st.builds(DramTile, st.integers(0, 9999), st.sampled_from(CODES), affines(), _DIMS)
_FLOATS = st.floats(width=32, allow_nan=False)


def operands(kind: Kind) -> st.SearchStrategy[Any]:
    match kind:
        case TileKind(spaces=spaces):
            chip = tuple(space for space in spaces if space != "dram")
            if not chip:
                return _DRAM_TILES
            return sram_tiles(chip) | _DRAM_TILES if "dram" in spaces else sram_tiles(chip)
        case ScalarKind():
            return _FLOATS | sram_tiles()
        case EnumKind(names=names):
            return st.sampled_from(names)
        case UintKind(low=low, high=high):
            return st.integers(low, high)
        case IntsKind(most=most):
            return st.lists(st.integers(-(2**31), 2**31), max_size=most).map(tuple)
        case FirstKind():
            return st.none() | st.lists(_DEPTHS, max_size=5, unique=True).map(lambda found: tuple(sorted(found)))
    raise TypeError(f"no strategy for {kind}")


_WAITS = st.lists(st.builds(Wait, st.sampled_from(QUEUES), affines(), st.integers(0, 2**31)), max_size=3).map(tuple)


def instructions(cls: type[Instruction]) -> st.SearchStrategy[Instruction]:
    parts = {name: operands(kind) for name, kind in cls.kinds()}
    return st.builds(cls, **parts, origin=st.integers(0, 9999), waits=_WAITS)


def bits(value: float) -> bytes:
    return struct.pack("<f", value)
