"""Sums of float16 on the CPU: added up in float32, as onnxruntime and the NeuronCore do, and rounded once."""

from typing import Any

import ml_dtypes  # noqa: F401  bfloat16 as a name
import numpy as np
import pytest
from onnx import TensorProto, helper

import tvm_neuron
from tests.onnx_models import make_model, reference
from tvm_neuron import BuildOptions, relay
from tvm_neuron.runtime.tensors import as_numpy

CASES: list[tuple[str, tuple[int, ...], tuple[tuple[int, ...], ...], dict[str, Any]]] = [
    ("ReduceMean", (1, 3000), (), {"keepdims": 0}),
    ("GlobalAveragePool", (1, 2, 40, 40), (), {}),
    ("AveragePool", (1, 2, 40, 40), (), {"kernel_shape": [40, 40]}),
    ("Conv", (1, 64, 36), ((4, 64, 3),), {}),
    ("Conv", (1, 64, 6, 6), ((4, 64, 3, 3),), {}),
    ("Conv", (1, 16, 6, 6, 6), ((4, 16, 3, 3, 3),), {}),
    ("ConvTranspose", (1, 64, 6, 6), ((64, 4, 3, 3),), {}),
    ("MatMul", (3, 4, 1000), ((3, 1000, 5),), {}),
    ("Einsum", (3, 4, 500), ((3, 500, 5),), {"equation": "bij,bjk->ik"}),
    ("Softmax", (2, 2000), (), {}),
    ("LayerNormalization", (2, 2000), ((2000,), (2000,)), {}),
]


@pytest.mark.parametrize(("op", "shape", "weights", "attributes"), CASES)
def test_sums(
    op: str, shape: tuple[int, ...], weights: tuple[tuple[int, ...], ...], attributes: dict[str, Any]
) -> None:
    rng = np.random.default_rng(0)
    names = [f"w{number}" for number in range(len(weights))]
    arrays = {name: rng.uniform(0.5, 1.5, size).astype(np.float16) for name, size in zip(names, weights, strict=True)}
    check([helper.make_node(op, ["x", *names], ["y"], **attributes)], rng.uniform(0.5, 1.5, shape), arrays)


def test_a_long_cumulative_sum() -> None:
    node = helper.make_node("CumSum", ["x", "axis"], ["y"], reverse=1)
    check([node], np.random.default_rng(0).uniform(0.5, 1.5, (2, 3000)), {"axis": np.array(1)})


def check(nodes: list[Any], x: np.ndarray, weights: dict[str, np.ndarray], opset: int = 18) -> None:
    x = x.astype(np.float16)
    model = make_model(nodes, {"x": x.shape}, ["y"], weights, opset, dtype=TensorProto.FLOAT16)
    mod, params = relay.frontend.from_onnx(model)
    library = relay.build(mod, params=params, options=BuildOptions(on_cpu=("*",)))
    executor = relay.graph_executor.GraphModule(library["default"](tvm_neuron.device()))
    executor.run(x=x)
    (wanted,) = (array.astype(np.float64) for array in reference(model, {"x": x}))
    actual = executor.get_output(0).numpy()
    assert actual.dtype == np.float16
    np.testing.assert_allclose(actual, wanted, rtol=2.0**-10)  # half a unit of the last place each


def test_tanh_of_small_numbers() -> None:
    check([helper.make_node("Tanh", ["x"], ["y"])], np.random.default_rng(0).standard_normal((34, 6)) / 1000, {})


@pytest.mark.parametrize(
    ("op", "attributes"), [("Gelu", {}), ("Gelu", {"approximate": "tanh"}), ("Sigmoid", {}), ("Erf", {})]
)
def test_functions_of_several_steps(op: str, attributes: dict[str, Any]) -> None:
    x = np.linspace(-3, 3, 90).reshape(3, 30)
    check([helper.make_node(op, ["x"], ["y"], **attributes)], x, {}, opset=20)


@pytest.mark.parametrize("op", ["Exp", "Sigmoid", "Tanh"])
@pytest.mark.parametrize(
    ("source", "target"), [("bfloat16", "bfloat16"), ("float32", "bfloat16"), ("bfloat16", "float32")]
)
def test_functions_between_casts(op: str, source: str, target: str) -> None:
    types = {"bfloat16": TensorProto.BFLOAT16, "float32": TensorProto.FLOAT}
    nodes = [
        helper.make_node("Cast", ["x"], ["wide"], to=TensorProto.FLOAT), helper.make_node(op, ["wide"], ["made"]),
        helper.make_node("Cast", ["made"], ["y"], to=types[target]),
    ]  # fmt: skip
    model = make_model(nodes, {"x": (2, 3, 20)}, ["y"], {}, dtype=types[source])
    mod, params = relay.frontend.from_onnx(model)
    library = relay.build(mod, params=params, options=BuildOptions(on_cpu=("*",)))
    executor = relay.graph_executor.GraphModule(library["default"](tvm_neuron.device()))
    x = np.random.default_rng(4).uniform(-3, 3, (2, 3, 20)).astype(np.dtype(source))
    executor.run(x=x)
    wide = x.astype(np.float64)
    wanted = {"Exp": np.exp(wide), "Sigmoid": 1 / (1 + np.exp(-wide)), "Tanh": np.tanh(wide)}[op]
    found = as_numpy(executor.get_output(0)).astype(np.float64)
    np.testing.assert_allclose(
        found, wanted, rtol=2.0**-7 if target == "bfloat16" else 1e-5
    )  # a unit of the last place
