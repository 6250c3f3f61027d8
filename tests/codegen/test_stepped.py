"""Heads of a projection are read from the partitions where its channels lie, those of each head by themselves."""

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from tests.codegen.on_core import check
from tests.onnx_models import make_model
from tests.stages.networks import compile_model
from tvm_neuron.isa import Transpose

DEPTH = 96


def _rotated(tokens: int, heads: int, size: int) -> onnx.ModelProto:
    """Each head of a projection, and it with its halves the other way round, by what tells the position."""
    rng = np.random.default_rng(heads * size)
    weights = {
        "w": rng.standard_normal((DEPTH, heads * size)).astype(np.float32) / 10,
        "cos": rng.uniform(-1, 1, (tokens, size)).astype(np.float32),
        "sin": rng.uniform(-1, 1, (tokens, size)).astype(np.float32),
        "shape": np.array([tokens, heads, size]),
        "zero": np.array([0]),
        "half": np.array([size // 2]),
        "end": np.array([size]),
        "last": np.array([2]),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Reshape", ["p", "shape"], ["r"]),
        helper.make_node("Transpose", ["r"], ["t"], perm=[1, 0, 2]),
        helper.make_node("Slice", ["t", "zero", "half", "last"], ["low"]),
        helper.make_node("Slice", ["t", "half", "end", "last"], ["high"]),
        helper.make_node("Neg", ["high"], ["neg"]),
        helper.make_node("Concat", ["neg", "low"], ["turned"], axis=2),
        helper.make_node("Mul", ["t", "cos"], ["a"]),
        helper.make_node("Mul", ["turned", "sin"], ["b"]),
        helper.make_node("Add", ["a", "b"], ["sum"]),
        helper.make_node("MatMul", ["sum", "keys"], ["y"]),
    ]
    return make_model(nodes, {"x": (tokens, DEPTH), "keys": (heads, size, 5)}, ["y"], weights)


@pytest.mark.slow
@settings(max_examples=4, deadline=None)
@given(
    tokens=st.sampled_from([1, 3, 40]),
    heads=st.sampled_from([1, 2, 3, 6]),
    size=st.sampled_from([16, 32, 64, 96, 128]),
    chip=st.sampled_from(["inf1", "inf2"]),
)
def test_heads_of_any_size(tokens: int, heads: int, size: int, chip: str) -> None:
    rng = np.random.default_rng(tokens)
    inputs = {"x": rng.standard_normal((tokens, DEPTH)), "keys": rng.standard_normal((heads, size, 5))}
    check(_rotated(tokens, heads, size), {n: v.astype(np.float32) for n, v in inputs.items()}, chip, "all", 24)


@pytest.mark.parametrize("heads", [2, 6])
def test_heads_are_not_turned_one_element_at_a_time(heads: int) -> None:
    program = compile_model(_rotated(1, heads, 64), "neuron/inf2").program
    assert sum(isinstance(instruction, Transpose) for _, instruction in program.instructions()) < 20
