"""Einsum against onnxruntime: every notation, all on the core."""

import numpy as np
import pytest
import tvm
from onnx import helper

import tvm_neuron
from tests.onnx_models import make_model, reference
from tvm_neuron import relay

CASES = [
    ("ij,jk->ik", [(5, 6), (6, 7)]),
    ("bqhd,bkhd->bhqk", [(2, 20, 3, 32), (2, 30, 3, 32)]),
    ("...ij,...jk->...ik", [(2, 3, 5, 6), (2, 3, 6, 7)]),
    ("i j , j k", [(5, 6), (6, 7)]),
    ("ij,jk,kl->il", [(5, 6), (6, 7), (7, 8)]),
    ("bij->bji", [(2, 5, 6)]),
    ("bij->b", [(2, 5, 6)]),
    ("ij,ij->ij", [(5, 6), (5, 6)]),
    ("i,j->ij", [(5,), (6,)]),
    ("ab,cd->abcd", [(2, 3), (4, 5)]),
    ("...i,...i->...", [(4, 2, 6), (4, 2, 6)]),
]


@pytest.mark.parametrize(("equation", "shapes"), CASES)
def test_einsum(equation: str, shapes: list[tuple[int, ...]]) -> None:
    names = [f"x{i}" for i in range(len(shapes))]
    node = helper.make_node("Einsum", names, ["y"], equation=equation)
    random = np.random.default_rng(0)
    inputs = {name: random.standard_normal(s).astype(np.float32) for name, s in zip(names, shapes, strict=True)}
    model = make_model([node], dict(zip(names, shapes, strict=True)), ["y"])
    mod, params = relay.frontend.from_onnx(model)
    library = relay.build(mod, target="neuron", params=params)
    executor = relay.graph_executor.GraphModule(library["default"](tvm.device("neuron")))
    executor.run(**inputs)
    (wanted,) = reference(model, inputs)
    np.testing.assert_allclose(executor.get_output(0).numpy(), wanted, rtol=0, atol=2.0**-6 * np.abs(wanted).max())
    (row,) = tvm_neuron.report(library).placement
    assert row.where == "neuroncore", row
