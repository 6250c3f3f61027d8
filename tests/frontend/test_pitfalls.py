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


NMS = ["boxes", "scores", "most", "iou", "least"]
KNOWN = {"most": np.int64([3]), "iou": np.float32([0.5]), "least": np.float32([0.1]), "on": np.True_, "off": np.False_}


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        (node_of("ConvTranspose", ["x", "w"], ["y"], output_shape=[10, 10]), "output_shape"),
        (node_of("LayerNormalization", ["x", "s"], ["y", "mean"]), "'mean' is used"),
        (node_of("NonMaxSuppression", ["boxes", "scores", "seen"], ["y"]), "limits are known at run time only"),
        (node_of("RoiAlign", ["x", "r", "i"], ["y"], mode="max"), "mode is max"),
    ],
)
def test_a_wrong_form_is_known(node: onnx.NodeProto, reason: str) -> None:
    assert reason in pitfall(node, KNOWN.get)


@pytest.mark.parametrize(
    "node",
    [
        node_of("LayerNormalization", ["x", "s"], ["y"]),
        node_of("NonMaxSuppression", NMS, ["y"]),
    ],
)
def test_a_right_form_passes(node: onnx.NodeProto) -> None:
    assert pitfall(node, KNOWN.get) == ""


def test_the_importer_asks() -> None:
    node = node_of("ConvTranspose", ["x", "w"], ["y"], name="up", output_shape=[10, 10])
    weights = {"w": np.zeros((4, 2, 3, 3), np.float32)}
    with pytest.raises(ModelError, match=r"'up' \(ConvTranspose\) can't be imported: it gives output_shape"):
        from_onnx(make_model([node], {"x": [1, 4, 8, 8]}, ["y"], weights))
