"""Beta 1's compiler makes one instruction of a square that is written as two: beside float64, and where it may not."""

# mypy: ignore-errors
from dataclasses import replace

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np
import pytest

from tvm_neuron.nki.dialects import BETA1
from tvm_neuron.nki.kernel import Kernel
from tvm_neuron.program.dynamic import expand


@nki.jit
def product(x, form):
    """0.3 * x * x, as `form` says."""
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(x)
    factor = nisa.memset(shape=(x.shape[0], 1), value=0.3, dtype=nl.float32) if form == "column" else 0.3
    scaled = nisa.tensor_scalar(tile, op0=nl.multiply, operand0=-0.3 if form == "negative" else factor)
    if form == "changed between":
        tile[...] = nl.add(tile, 1.0)
    result = nl.multiply(tile, scaled) if form == "right" else nl.multiply(scaled, tile)
    if form == "used twice":
        result = nl.add(result, scaled)
    if form == "part":
        result[:, 0:8] = nl.subtract(scaled[:, 8:16], tile[:, 0:8])
    nl.store(out, value=result)
    return out


WANTED = {
    "negative": lambda x: -0.3 * x * x,
    "changed between": lambda x: 0.3 * x * (x + 1),
    "used twice": lambda x: 0.3 * x * x + 0.3 * x,
    "part": lambda x: np.concatenate([0.3 * x[:, 8:16] - x[:, :8], (0.3 * x * x)[:, 8:]], 1),
}


def squares(traced) -> int:
    """Instructions of Scalar that square."""
    statics = expand(traced.assembled.program).statics
    return sum(getattr(each, "function", "") == "square" for each in statics)


@pytest.mark.parametrize("form", ["left", "right", "column", *WANTED])
def test_a_square_is_one_instruction_where_it_is_one(form: str) -> None:
    x = np.random.default_rng(7).normal(0, 3, (100, 64)).astype(np.float32)
    traced = product.trace(x, form)
    wanted = WANTED.get(form, lambda x: 0.3 * x * x)(x.astype(np.float64))
    np.testing.assert_allclose(traced.run(), wanted, 1e-6, 1e-6)  # four roundings of float32
    assert squares(traced) == (form in ("left", "right"))
    assert traced.time().instructions == _as_written(x, form).time().instructions - (form in ("left", "right"))


def test_what_bfloat16_rounds_between_stays() -> None:
    x = np.random.default_rng(8).normal(0, 3, (64, 32)).astype(nl.bfloat16)
    assert squares(product.trace(x, "left")) == 0


def test_numbers_without_end_stay_what_they_are() -> None:
    x = np.array([[np.inf, -np.inf, np.nan, 0.0, -0.0, 3e38, -3e38, 1e-30]], np.float32)
    with np.errstate(all="ignore"):
        wanted = np.float32(0.3) * x * x
        np.testing.assert_allclose(product(x, "left"), wanted, 1e-6)
        np.testing.assert_array_equal(_as_written(x, "left").run(), wanted)


def _as_written(x, form: str):
    return Kernel(product.function, dialect=replace(BETA1, simplifies=False)).trace(x, form)
