"""An instruction that writes two tiles, in loops and in place: all modes give what NumPy gives."""

from math import prod

import numpy as np
import pytest

from tvm_neuron.codegen.sync import synchronise
from tvm_neuron.hw import load_device
from tvm_neuron.isa import ActivationReduce, DmaCopy, DramTile, Tile, affine
from tvm_neuron.program import DramTensor, Loop, Origin, Program
from tvm_neuron.program.race import check_races
from tvm_neuron.program.verify import verify
from tvm_neuron.sim import Machine

DEVICE, TURNS, ROWS, WIDTH = load_device("trn1"), 6, 8, 20


PLAIN, IN_ROWS = ((1, WIDTH),), ((5, 4), (1, 5))  # steps and counts of what a partition has


def sbuf(at: int, dims: tuple[tuple[int, int], ...], ring: int = 1) -> Tile:
    turn = affine(at, ((0, 4 * WIDTH),), wrap=4 * WIDTH * ring) if ring > 1 else affine(at)
    return Tile("sbuf", "float32", affine(0), ROWS, turn, dims)


def dram(tensor: int, dims: tuple[tuple[int, int], ...]) -> DramTile:
    width = prod(count for _, count in dims)
    return DramTile(tensor, "float32", affine(0, ((0, ROWS * width),)), ((width, ROWS), *dims))


def program(is_in_place: bool, dims: tuple[tuple[int, int], ...]) -> Program:
    column = ((1, 1),)
    source, scale = sbuf(0, dims, 2), sbuf(3072, column)
    result, total = source if is_in_place else sbuf(1024, dims, 2), sbuf(2048, column)
    body = (
        DmaCopy(source, dram(0, dims), 0),
        DmaCopy(scale, dram(1, column), 0),
        ActivationReduce(result, total, source, scale, 0.25, "exp"),
        DmaCopy(dram(2, dims), result, 1),
        DmaCopy(dram(3, column), total, 2),
    )
    kinds = (("x", "input", WIDTH), ("scale", "input", 1), ("y", "output", WIDTH), ("sums", "output", 1))
    tensors = tuple(DramTensor(name, kind, (TURNS, ROWS, width), "float32") for name, kind, width in kinds)
    return synchronise(Program(tensors, (Origin("both", "kernel"),), (Loop(TURNS, body),)), DEVICE)


@pytest.mark.parametrize("mode", ["nest", "step", "strict"])
@pytest.mark.parametrize("dims", [PLAIN, IN_ROWS])
@pytest.mark.parametrize("is_in_place", [False, True])
def test_both_results(is_in_place: bool, dims: tuple[tuple[int, int], ...], mode: str) -> None:
    made = program(is_in_place, dims)
    verify(made, DEVICE)
    check_races(made, DEVICE)
    rng = np.random.default_rng(5)
    x = rng.standard_normal((TURNS, ROWS, WIDTH)).astype(np.float32)
    scale = rng.uniform(0.25, 1, (TURNS, ROWS, 1)).astype(np.float32)
    found = Machine(made, DEVICE, {}).run({"x": x, "scale": scale}, mode)
    wanted = np.exp(x.astype(np.float64) * scale + 0.25)
    np.testing.assert_allclose(found["y"], wanted, 1e-6)  # one rounding of float32, and that of exp
    np.testing.assert_allclose(found["sums"][..., 0], wanted.sum(-1), 1e-5)
