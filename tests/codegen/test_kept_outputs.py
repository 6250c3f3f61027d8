"""Outputs that engines read again: they stay in SBUF, and the results are onnxruntime's."""

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.models.agreement import Case, random_inputs, relative_error
from tests.onnx_models import make_model
from tests.stages.networks import compile_model, run
from tvm_neuron.build import BuildOptions
from tvm_neuron.isa import DmaCopy, DramTile
from tvm_neuron.neff import Neff


def distribution() -> onnx.ModelProto:
    """An output that other engines than the PE array read, and one that is read where it is written in two parts."""
    nodes = [
        helper.make_node("Softmax", ["x"], ["shares"]),
        helper.make_node("Log", ["shares"], ["logs"]),
        helper.make_node("Concat", ["logs", "z"], ["both"], axis=1),
        helper.make_node("Softmax", ["both"], ["y"]),
    ]
    return make_model(nodes, {"x": (1, 48, 128), "z": (1, 24, 128)}, ["shares", "both", "y"], {})


def cache() -> onnx.ModelProto:
    """As decoders step: a row of a cache is replaced, and the PE array multiplies by all of it, twice."""
    nodes = [
        helper.make_node("Where", ["is_new", "new", "old"], ["cache"]),
        helper.make_node("Transpose", ["cache"], ["turned"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["query", "turned"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["shares"]),
        helper.make_node("MatMul", ["shares", "cache"], ["y"]),
    ]
    inputs = {"new": (1, 1, 64), "old": (1, 48, 64), "query": (1, 4, 64)}
    is_new = np.arange(48).reshape(1, 48, 1) == 5
    return make_model(nodes, inputs, ["cache", "y"], {"is_new": is_new})


def loaded(compiled: Neff) -> set[str]:
    """The tensors that come from DRAM."""
    copies = [part.source for _, part in compiled.program.instructions() if isinstance(part, DmaCopy)]
    return {compiled.program.tensors[tile.tensor].name for tile in copies if isinstance(tile, DramTile)}


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
@pytest.mark.parametrize("network", [distribution, cache])
def test_what_is_read_again_does_not_come_back(network: type, chip: str) -> None:
    model = network()
    case = Case(model, random_inputs(model))
    compiled = compile_model(model, f"neuron/{chip}")
    outputs = {tensor.name for tensor in compiled.outputs}
    assert len(outputs) > 1
    assert loaded(compiled).isdisjoint(outputs)
    found = run(compiled, case.inputs, "strict", seed=1)
    for name, exact in case.exact.items():
        assert relative_error(found[name], exact) < case.bounds[name]


def test_an_output_of_which_dma_writes_a_part_lies_in_dram() -> None:
    nodes = [
        helper.make_node("HardSigmoid", ["x"], ["first"]),
        helper.make_node("Cos", ["first"], ["turned"]),
        helper.make_node("Mul", ["turned", "w"], ["scaled"]),
        helper.make_node("Concat", ["first", "scaled", "scaled"], ["y"], axis=1),
    ]
    w = np.random.default_rng(2).standard_normal((1, 5, 1, 1)).astype("float32")
    model = make_model(nodes, {"x": (3, 5, 6, 1)}, ["y"], {"w": w})
    case = Case(model, random_inputs(model))
    compiled = compile_model(model, "neuron/inf2", BuildOptions(fp32_cast="matmult"))
    found = run(compiled, case.inputs, "strict", seed=1)
    assert relative_error(found["y"], case.exact["y"]) < case.bounds["y"]
