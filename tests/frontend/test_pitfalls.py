"""Forms that TVM's importer gets wrong are refused, each by its operator's name; their right neighbours are not."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.onnx_models import make_model
from tvm_neuron.errors import ModelError
from tvm_neuron.frontend import from_onnx
from tvm_neuron.frontend.onnx.pitfalls import pitfall


def node_of(op: str, inputs: list[str], outputs: list[str], **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op, inputs, outputs, **attributes)


KNOWN = {"on": np.True_, "off": np.False_}


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        (node_of("LayerNormalization", ["x", "s"], ["y", "mean"]), "'mean' is used"),
        (node_of("RoiAlign", ["x", "r", "i"], ["y"], mode="max"), "mode is max"),
    ],
)
def test_a_wrong_form_is_known(node: onnx.NodeProto, reason: str) -> None:
    assert reason in pitfall(node, KNOWN.get)


@pytest.mark.parametrize(
    "node",
    [
        node_of("LayerNormalization", ["x", "s"], ["y"]),
        node_of("RoiAlign", ["x", "r", "i"], ["y"]),
    ],
)
def test_a_right_form_passes(node: onnx.NodeProto) -> None:
    assert pitfall(node, KNOWN.get) == ""


def test_the_importer_asks() -> None:
    node = node_of("RoiAlign", ["x", "r", "i"], ["y"], name="roi", mode="max")
    weights = {"r": np.zeros((1, 4), np.float32), "i": np.zeros(1, np.int64)}
    with pytest.raises(ModelError, match=r"'roi' \(RoiAlign\) can't be imported: its mode is max"):
        from_onnx(make_model([node], {"x": [1, 4, 8, 8]}, ["y"], weights))
