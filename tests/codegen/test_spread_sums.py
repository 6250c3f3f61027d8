"""Norms of rows that lie along the partitions: the PE array adds these up, and all partitions have the sum."""

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from tests.codegen.on_core import ROUNDING, on_core
from tests.codegen.test_sums_on_the_way import Array, layer_norm
from tests.onnx_models import make_model
from tests.stages.networks import compile_model
from tvm_neuron.codegen.steps import without
from tvm_neuron.hw import load_device
from tvm_neuron.isa import Matmul
from tvm_neuron.program import Program
from tvm_neuron.sim import time_program

STEP = "spread_sums"


def rms_norm(x: Array) -> Array:
    return x / np.sqrt(np.square(x).mean(-1, keepdims=True) + 1e-5)


def softmax(x: Array) -> Array:
    grown = np.exp(x - x.max(-1, keepdims=True))
    return grown / grown.sum(-1, keepdims=True)


NORMS = {"rms": rms_norm, "layer": layer_norm, "softmax": softmax}


def model_of(kind: str, rows: int, width: int, weights: Array) -> onnx.ModelProto:
    """A norm between two products, as in a transformer."""
    node = helper.make_node
    norm = {
        "rms": [
            node("Mul", ["h", "h"], ["s"]), node("ReduceMean", ["s", "last"], ["m"]), node("Add", ["m", "eps"], ["e"]),
            node("Sqrt", ["e"], ["r"]), node("Reciprocal", ["r"], ["q"]), node("Mul", ["h", "q"], ["n"]),
        ],
        "layer": [node("LayerNormalization", ["h", "gamma"], ["n"])],
        "softmax": [node("Softmax", ["h"], ["n"])],
    }[kind]  # fmt: skip
    constants: dict[str, Array] = {
        "w": weights, "last": np.array([-1]), "eps": np.array(1e-5, np.float32), "gamma": np.ones(width, np.float32)
    }  # fmt: skip
    nodes = [node("MatMul", ["x", "w"], ["h"]), *norm, node("MatMul", ["n", "w"], ["y"])]
    used = {name for each in nodes for name in each.input}
    return make_model(nodes, {"x": (1, rows, width)}, ["y"], {k: v for k, v in constants.items() if k in used})


def sums_by_array(program: Program) -> bool:
    """Whether it multiplies float32, which only sums are where all else is cast."""
    return any(isinstance(part, Matmul) and part.moving.dtype == "float32" for _, part in program.instructions())


@pytest.mark.parametrize(("kind", "width"), [("rms", 64), ("rms", 320), ("layer", 128), ("layer", 640)])
def test_it_is_taken_where_it_is_quicker(kind: str, width: int) -> None:
    device = load_device("neuron/inf2")
    rng = np.random.default_rng(width)
    model = model_of(kind, 4, width, rng.standard_normal((width, width)).astype(np.float32) / np.float32(width**0.5))
    neff = compile_model(model, "neuron/inf2")
    assert sums_by_array(neff.program)
    with without(STEP):
        other = compile_model(model, "neuron/inf2")
    assert not sums_by_array(other.program)
    assert time_program(neff.program, device).total_ps < time_program(other.program, device).total_ps


def test_rows_of_a_softmax_stay_within_partitions() -> None:
    rng = np.random.default_rng(2)
    model = model_of("softmax", 4, 128, rng.standard_normal((128, 128)).astype(np.float32))
    assert not sums_by_array(compile_model(model, "neuron/inf2").program)


@pytest.mark.parametrize(("chip", "width"), [("inf1", 128), ("inf2", 1600)])
def test_neither_without_float32_nor_of_long_rows(chip: str, width: int) -> None:
    rng = np.random.default_rng(3)
    model = model_of("rms", 4, width, rng.standard_normal((width, width)).astype(np.float32))
    assert not sums_by_array(compile_model(model, f"neuron/{chip}").program)


@pytest.mark.slow
@settings(max_examples=8)
@given(
    kind=st.sampled_from(sorted(NORMS)), rows=st.integers(1, 150), width=st.integers(16, 400),
    cast=st.sampled_from(["all", "none"]), seed=st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_as_numpy(kind: str, rows: int, width: int, cast: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights = rng.standard_normal((width, width)).astype(np.float32) / np.float32(width**0.5)
    x = rng.standard_normal((1, rows, width)).astype(np.float32)
    wide = weights.astype(np.float64)
    expected = NORMS[kind](x.astype(np.float64) @ wide) @ wide
    (found,) = on_core(model_of(kind, rows, width, weights), {"x": x}, "inf2", cast)
    assert np.linalg.norm(found - expected) < 16 * ROUNDING[cast] * np.linalg.norm(expected)
