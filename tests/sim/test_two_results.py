"""An instruction that writes two tiles, in loops and in place: all modes give what NumPy gives."""

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


def sbuf(at: int, width: int, ring: int = 1) -> Tile:
    turn = affine(at, ((0, 4 * width),), wrap=4 * width * ring) if ring > 1 else affine(at)
    return Tile("sbuf", "float32", affine(0), ROWS, turn, ((1, width),))


def dram(tensor: int, width: int) -> DramTile:
    return DramTile(tensor, "float32", affine(0, ((0, ROWS * width),)), ((width, ROWS), (1, width)))


def program(is_in_place: bool) -> Program:
    source = sbuf(0, WIDTH, 2)
    result, total = source if is_in_place else sbuf(1024, WIDTH, 2), sbuf(2048, 1)
    body = (
        DmaCopy(source, dram(0, WIDTH), 0),
        ActivationReduce(result, total, source, 0.5, 0.25, "exp"),
        DmaCopy(dram(1, WIDTH), result, 1),
        DmaCopy(dram(2, 1), total, 2),
    )
    kinds = (("x", "input", WIDTH), ("y", "output", WIDTH), ("sums", "output", 1))
    tensors = tuple(DramTensor(name, kind, (TURNS, ROWS, width), "float32") for name, kind, width in kinds)
    return synchronise(Program(tensors, (Origin("both", "kernel"),), (Loop(TURNS, body),)), DEVICE)


@pytest.mark.parametrize("mode", ["nest", "step", "strict"])
@pytest.mark.parametrize("is_in_place", [False, True])
def test_both_results(is_in_place: bool, mode: str) -> None:
    made = program(is_in_place)
    verify(made, DEVICE)
    check_races(made, DEVICE)
    x = np.random.default_rng(5).standard_normal((TURNS, ROWS, WIDTH)).astype(np.float32)
    found = Machine(made, DEVICE, {}).run({"x": x}, mode)
    wanted = np.exp(x.astype(np.float64) * 0.5 + 0.25)
    np.testing.assert_allclose(found["y"], wanted, 1e-6)  # one rounding of float32, and that of exp
    np.testing.assert_allclose(found["sums"][..., 0], wanted.sum(-1), 1e-5)
