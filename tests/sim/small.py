"""Pieces of small programs: tiles in the first bytes of memory, and a program that loads, runs and stores."""

import numpy as np

from tvm_neuron.isa import Affine, DmaCopy, DramTile, Tile, affine
from tvm_neuron.isa.dtypes import DTYPES
from tvm_neuron.program import DramTensor, Node, Origin, Program

TENSORS = (DramTensor("x", "input", (4, 32), "bfloat16"), DramTensor("y", "output", (4, 32), "bfloat16"))


def sbuf(at: int | Affine, elems: int = 4, partitions: int = 4) -> Tile:
    where = affine(at) if isinstance(at, int) else at
    return Tile("sbuf", "bfloat16", affine(0), partitions, where, ((1, elems),))


def psum(at: int | Affine, elems: int = 4) -> Tile:
    return Tile("psum", "float32", affine(0), 4, affine(at) if isinstance(at, int) else at, ((1, elems),))


def dram(tensor: int, at: int = 0, elems: int = 32) -> DramTile:
    return DramTile(tensor, "bfloat16", affine(at), ((32, 4), (1, elems)))


def load(at: int = 0, origin: int = 0) -> Node:
    return DmaCopy(sbuf(at, 32), dram(0), 0, origin=origin)


def store(at: int, elems: int = 32, origin: int = 2) -> Node:
    return DmaCopy(dram(1, 0, elems), sbuf(at, elems), 1, origin=origin)


def program(*body: Node) -> Program:
    origins = (Origin("load x", "input"), Origin("conv1", "nn.conv2d"), Origin("store y", "output"))
    return Program(TENSORS, origins, body)


def x() -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(3).standard_normal((4, 32)).astype(DTYPES["bfloat16"])}
