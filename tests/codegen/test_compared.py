"""What is compared with another tensor isn't rounded: the position of a maximum is exact in every precision."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from tests.codegen.on_core import check, on_core
from tests.onnx_models import Arrays, make_model, reference
from tvm_neuron.codegen.kernels.storage_dtypes import SMALL_ELEMS

EXTREMES = {
    "position": [helper.make_node("ArgMax", ["x"], ["found"], axis=-2), helper.make_node("Neg", ["x"], ["read"])],
    "which": [
        helper.make_node("ReduceMin", ["x", "axes"], ["read"]),
        helper.make_node("Equal", ["x", "read"], ["found"]),
    ],
    "ranks": [helper.make_node("TopK", ["x", "k"], ["read", "found"], axis=-2)],
    "moved": [
        helper.make_node("ReduceMax", ["x", "axes"], ["read"]),
        helper.make_node("Transpose", ["x"], ["turned"], perm=[2, 0, 1]),
        helper.make_node("Transpose", ["read"], ["turned_too"], perm=[2, 0, 1]),
        helper.make_node("GreaterOrEqual", ["turned", "turned_too"], ["found"]),
    ],
}


@settings(max_examples=4)
@given(
    kind=st.sampled_from(sorted(EXTREMES)),
    shape=st.tuples(*[st.integers(1, 3)] * 2, st.sampled_from([5, 64])),
    mode=st.sampled_from(["all", "all-fp16", "matmult"]),
    chip=st.sampled_from(["inf1", "inf2"]),
    seed=st.integers(0, 99),
)
def test_extremes_that_the_array_reads(kind: str, shape: tuple[int, int, int], mode: str, chip: str, seed: int) -> None:
    draw = np.random.default_rng(seed)
    weights = draw.standard_normal((shape[-1], 16)).astype("float32")
    constants: Arrays = {"w": weights, "axes": np.array([-2]), "k": np.array([min(2, shape[1])])}
    nodes = [*EXTREMES[kind], helper.make_node("MatMul", ["read", "w"], ["product"])]
    model = make_model(nodes, {"x": shape}, ["found", "product"], constants)
    inputs = {"x": draw.standard_normal(shape).astype("float32")}
    wanted = reference(model, inputs)
    found, product = on_core(model, inputs, chip, mode)
    np.testing.assert_array_equal(found, wanted[0])
    size = np.abs(wanted[1]).max() + 1
    np.testing.assert_allclose(product, wanted[1], atol=size * 2**-5)


@pytest.mark.parametrize(
    ("mode", "order", "axis"), [("matmult-fp16", (0, 1, 2), 0), ("all", (0, 2, 1), -1), ("none", (2, 0, 1), 0)]
)
def test_ranks_of_halves_that_the_array_reads(mode: str, order: tuple[int, ...], axis: int) -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "z"], ["made"]),
        helper.make_node("MatMul", ["made", "w"], ["read"]),
        helper.make_node("Transpose", ["made"], ["turned"], perm=order),
        helper.make_node("TopK", ["turned", "k"], ["values", "found"], axis=axis),
    ]
    shapes = {"x": (3, 40, 16), "z": (3, 16, 48), "w": (3, 48, 24)}
    model = make_model(nodes, shapes, ["values", "found", "read"], {"k": np.array([2])}, dtype=TensorProto.FLOAT16)
    draw = np.random.default_rng(0)
    check(model, {name: draw.standard_normal(shape).astype("float16") for name, shape in shapes.items()}, "inf2", mode)


@pytest.mark.parametrize("mode", ["all", "all-fp16"])
def test_large_extremes(mode: str) -> None:
    shape = (2, SMALL_ELEMS + 512)
    model = make_model([helper.make_node("ArgMin", ["x"], ["y"], axis=0)], {"x": shape}, ["y"])
    inputs = {"x": np.random.default_rng(0).standard_normal(shape).astype("float32")}
    np.testing.assert_array_equal(on_core(model, inputs, "inf2", mode)[0], reference(model, inputs)[0])
