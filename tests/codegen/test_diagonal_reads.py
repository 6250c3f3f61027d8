"""Reads of which one axis steps along two dimensions: on the partitions and within them, no access pattern follows."""

import numpy as np
import pytest
from onnx import NodeProto, helper

import tvm_neuron
from tests.onnx_models import Arrays, make_model, reference
from tvm_neuron import BuildOptions, relay


def check(nodes: list[NodeProto], x: np.ndarray, weights: Arrays, target: str) -> None:
    model = make_model(nodes, {"x": x.shape}, ["y"], weights)
    mod, params = relay.frontend.from_onnx(model)
    library = relay.build(mod, target=target, params=params, options=BuildOptions(fp32_cast="matmult-fp16"))
    assert not tvm_neuron.report(library).placed("cpu")
    executor = relay.graph_executor.GraphModule(library["default"](tvm_neuron.device()))
    executor.run(x=x)
    (wanted,) = reference(model, {"x": x})
    # only products are rounded, to float16
    np.testing.assert_allclose(executor.get_output(0).numpy(), wanted, rtol=0, atol=2.0**-10 * np.abs(wanted).max())


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
@pytest.mark.parametrize(
    ("equation", "shape"),
    [
        ("ii->i", (5, 5)),
        ("bii->bi", (3, 7, 7)),
        ("bii->b", (3, 7, 7)),
        ("iib,bk->ik", (7, 7, 3)),
        ("iib,ik->bk", (7, 7, 3)),
    ],
)
def test_einsum(equation: str, shape: tuple[int, ...], chip: str) -> None:
    rng = np.random.default_rng(0)
    weights = {"w": rng.standard_normal((7, 4) if ",ik" in equation else (3, 4)).astype(np.float32)}
    operands = ["r", "w"] if "," in equation else ["r"]
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Einsum", operands, ["e"], equation=equation),
        helper.make_node("Sigmoid", ["e"], ["y"]),
    ]
    check(nodes, rng.standard_normal(shape).astype(np.float32), weights if "," in equation else {}, f"neuron/{chip}")


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
def test_one_element_of_each_column(chip: str) -> None:
    """Two columns: any two positions are a sum of axes, with a step of its own along the column's axis."""
    rng = np.random.default_rng(0)
    positions = rng.integers(0, 3, (2, 1, 5, 2))
    nodes = [
        helper.make_node("Sigmoid", ["x"], ["s"]),
        helper.make_node("Transpose", ["s"], ["t"], perm=[0, 1, 3, 2]),
        helper.make_node("GatherElements", ["t", "positions"], ["y"], axis=2),
    ]
    check(nodes, rng.standard_normal((2, 1, 2, 3)).astype(np.float32), {"positions": positions}, f"neuron/{chip}")
