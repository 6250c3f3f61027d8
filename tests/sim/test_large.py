"""Large instructions, which run on all cores in one pass over memory: what they read is never half written."""

import ml_dtypes
import numpy as np
import pytest

from tvm_neuron.hw import load_device
from tvm_neuron.isa import Activation, DmaCopy, DramTile, Memset, Tile, affine
from tvm_neuron.program import DramTensor, Node, Origin, Program
from tvm_neuron.sim import Machine

PARTITIONS, ELEMS = 16, 2500  # longer than what goes through a chain at a time
X = np.random.default_rng(0).standard_normal((PARTITIONS, ELEMS), np.float32)


def tile(at: int, dtype: str = "float32", elems: int = ELEMS) -> Tile:
    return Tile("sbuf", dtype, affine(0), PARTITIONS, affine(at), ((1, elems),))


def run(*body: Node, result: Tile) -> np.ndarray:
    tensors = (
        DramTensor("x", "input", (PARTITIONS, ELEMS), "float32"),
        DramTensor("y", "output", (PARTITIONS, result.free_elems), result.dtype),
    )
    load = DmaCopy(tile(0), DramTile(0, "float32", affine(0), ((ELEMS, PARTITIONS), (1, ELEMS))), 0)
    there = DramTile(1, result.dtype, affine(0), ((result.free_elems, PARTITIONS), (1, result.free_elems)))
    program = Program(tensors, (Origin("all", "all"),), (load, *body, DmaCopy(there, result, 1)))
    return Machine(program, load_device("inf1"), {}).run({"x": X})["y"]


@pytest.mark.parametrize("shift", [0, 4, -4, 5000, 10_000])
def test_what_is_read_may_overlap_what_is_written(shift: int) -> None:
    load = DmaCopy(tile(20_000), tile(0), 0)
    found = run(load, Activation(tile(20_000 + shift), tile(20_000), 2.0, 0.5, "relu"), result=tile(20_000 + shift))
    assert found.tobytes() == np.maximum(X * np.float32(2) + np.float32(0.5), np.float32(0)).tobytes()


@pytest.mark.parametrize("at", [0, 2, 4000, 8000, 10_000])
def test_narrower_values_may_overlap_what_is_read(at: int) -> None:
    found = run(Activation(tile(at, "bfloat16"), tile(0), 1.0, 0.5, "copy"), result=tile(at, "bfloat16"))
    assert found.tobytes() == (X + np.float32(0.5)).astype(ml_dtypes.bfloat16).tobytes()


def test_one_value_everywhere_is_rounded() -> None:
    found = run(Memset(tile(0, "bfloat16"), 1.01171875), result=tile(0, "bfloat16"))  # a tie: to the even one
    assert np.unique(found).tolist() == [1.015625]
