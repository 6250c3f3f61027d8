"""A state times a vector at each step: on the Vector engine, where the state lies, beside onnxruntime."""

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.codegen.on_core import PRECISIONS, check
from tests.onnx_models import make_model
from tests.stages.networks import compile_model
from tvm_neuron.codegen.steps import without
from tvm_neuron.isa import Matmul

CHANNELS, STATE = 96, 8


def steps(count: int) -> onnx.ModelProto:
    """States [CHANNELS, STATE] that decay and are added to, each of them times a vector of its own."""
    node, names, weights = helper.make_node, [], {"axis": np.int64([1])}
    nodes = [node("Sigmoid", ["decays"], ["rates"]), node("Identity", ["begin"], ["state0"])]
    for at in range(count):
        weights[f"at{at}"], weights[f"at{at + 1}"] = np.int64([at]), np.int64([at + 1])
        for name in ("rates", "terms", "vectors"):
            nodes.append(node("Slice", [name, f"at{at}", f"at{at + 1}", "axis"], [f"{name}{at}"]))
        nodes += [
            node("Squeeze", [f"rates{at}", "axis"], [f"rate{at}"]),
            node("Squeeze", [f"terms{at}", "axis"], [f"term{at}"]),
            node("Mul", [f"state{at}", f"rate{at}"], [f"less{at}"]),
            node("Add", [f"less{at}", f"term{at}"], [f"state{at + 1}"]),
            node("MatMul", [f"state{at + 1}", f"vectors{at}"], [f"y{at}"]),
        ]  # fmt: skip
        names.append(f"y{at}")
    nodes.append(node("Concat", names, ["y"], axis=1))
    shapes = {"decays": (CHANNELS, count, STATE), "terms": (CHANNELS, count, STATE)}
    return make_model(nodes, {**shapes, "vectors": (STATE, count), "begin": (CHANNELS, STATE)}, ["y"], weights)


def data(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    """Random."""
    rng = np.random.default_rng(0)
    sizes = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim] for i in model.graph.input}
    return {name: rng.standard_normal(size).astype(np.float32) for name, size in sizes.items()}


@pytest.mark.parametrize("precision", PRECISIONS)
def test_states_times_vectors(precision: tuple[str, str]) -> None:
    model = steps(3)
    check(model, data(model), *precision, roundings=10)


def test_states_are_not_transposed() -> None:
    model = steps(3)
    (with_it, without_it) = (_products(model, names) for names in ((), ("vector_products",)))
    assert with_it < without_it


def _products(model: onnx.ModelProto, names: tuple[str, ...]) -> int:
    with without(*names):
        program = compile_model(model, "neuron/inf2").program
    return sum(isinstance(each, Matmul) for _, each in program.instructions())
