"""Random well-formed programs: every operand kind of every instruction, in random loops.

They are drawn from a seed, not operand by operand: a hundred programs in a second matter more here than shrinking.
"""

import struct
from random import Random
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tvm_neuron.isa import ISA, QUEUES, Affine, DramTile, Instruction, Tile, Wait, affine
from tvm_neuron.isa.dtypes import CODES, DTYPES
from tvm_neuron.isa.operand import EnumKind, FirstKind, IntsKind, Kind, ScalarKind, TileKind, UintKind
from tvm_neuron.program import DramTensor, Loop, Node, Origin, Program
from tvm_neuron.program.form import TENSOR_KINDS

TENSORS, ORIGINS = 4, 2
_TEXTS = ("", "conv1/7x7", 'a "b" \\ # c', "Ärger\n", "0", "loop 4 {")


def random_affine(rng: Random, depth: int) -> Affine:
    """An address that follows some of `depth` loops, on a ring or not."""
    terms = [(loop, rng.randint(-999, 999)) for loop in range(depth) if rng.random() < 0.5]
    wrap = rng.choice((0, 1, 4096))
    return affine(rng.randint(-9, 10**6), terms, rng.randint(-5, 5) if wrap else 0, wrap)


def random_operand(rng: Random, kind: Kind, depth: int) -> Any:
    """A value of one operand kind."""
    dims = tuple((rng.randint(0, 999), rng.randint(0, 999)) for _ in range(rng.randint(0, 4)))
    where = random_affine(rng, depth)
    match kind:
        case TileKind() if "dram" in kind.spaces and rng.random() < 0.5:
            return DramTile(rng.randrange(TENSORS), rng.choice(CODES), where, dims)
        case ScalarKind() if rng.random() < 0.7:
            number = rng.choice((0.0, -0.0, 1e-40, float("inf"), rng.gauss(0, 1)))
            return struct.unpack("<f", struct.pack("<f", number))[0]
        case TileKind() | ScalarKind():
            space = rng.choice(("sbuf", "psum"))
            return Tile(space, rng.choice(CODES), random_affine(rng, depth), rng.randint(0, 128), where, dims)
        case EnumKind():
            return rng.choice(kind.names)
        case UintKind():
            return rng.randint(kind.low, kind.high)
        case IntsKind(most=most):
            return tuple(rng.randint(-(2**31), 2**31) for _ in range(rng.randint(0, most)))
        case FirstKind():
            return None if rng.random() < 0.3 else tuple(loop for loop in range(depth) if rng.random() < 0.5)
    raise AssertionError(f"no random value for {type(kind).__name__}")


def random_instruction(rng: Random, depth: int) -> Instruction:
    """One instruction inside `depth` loops."""
    cls = rng.choice(ISA)
    values = {name: random_operand(rng, kind, depth) for name, kind in cls.kinds()}
    waits = [Wait(rng.choice(QUEUES), random_affine(rng, depth), rng.randint(0, 999)) for _ in range(rng.randint(0, 2))]
    return cls(**values).replace(origin=rng.randrange(ORIGINS), waits=tuple(waits))


def random_body(rng: Random, depth: int = 0, least: int = 0) -> tuple[Node, ...]:
    """Instructions and loops, none empty."""
    return tuple(
        Loop(rng.randint(1, 9), random_body(rng, depth + 1, 1))
        if depth < 4 and rng.random() < 0.4
        else random_instruction(rng, depth)
        for _ in range(rng.randint(least, 4))
    )


def random_program(rng: Random) -> Program:
    """A program whose references all lead somewhere; what it computes is nonsense."""
    tensors = tuple(
        DramTensor(f"{index}{rng.choice(_TEXTS)}", rng.choice(TENSOR_KINDS), shape, rng.choice(CODES))
        for index in range(TENSORS)
        for shape in [tuple(rng.randint(1, 5) for _ in range(rng.randint(0, 4)))]
    )
    origins = tuple(Origin(rng.choice(_TEXTS), rng.choice(("Conv", *_TEXTS))) for _ in range(ORIGINS))
    return Program(tensors, origins, random_body(rng))


def random_weights(program: Program, rng: Random) -> dict[str, Any]:
    """An array for every weight tensor."""
    numbers = np.random.default_rng(rng.randrange(1 << 32))
    tensors = [tensor for tensor in program.tensors if tensor.kind == "weight"]
    return {t.name: numbers.integers(-9, 9, t.shape).astype(DTYPES[t.dtype]) for t in tensors}


seeds = st.integers(0, (1 << 32) - 1).map(Random)
programs = seeds.map(random_program)
bodies = seeds.map(random_body)
