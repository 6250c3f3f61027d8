"""Forms that TVM's importer gets wrong are refused, each by its operator's name; their right neighbours are not."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.onnx_models import make_model
from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.onnx.pitfalls import check_pitfalls


def graph_of(
    op: str, inputs: list[str], outputs: list[str], constants: dict[str, Any] | None = None, **attributes: Any
) -> onnx.GraphProto:
    node = helper.make_node(op, inputs, outputs, name="culprit", **attributes)
    initializers = [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()]
    value = helper.make_tensor_value_info
    return helper.make_graph(
        [node], "g", [value(n, TensorProto.FLOAT, [1, 4, 8, 8]) for n in inputs if n and n not in (constants or {})],
        [value(n, TensorProto.FLOAT, None) for n in outputs if n], initializers,
    )  # fmt: skip


NMS = ["boxes", "scores", "most", "iou", "least"]
LIMITS = {"most": np.int64([3]), "iou": np.float32([0.5]), "least": np.float32([0.1])}


@pytest.mark.parametrize(
    ("graph", "reason"),
    [
        (graph_of("AveragePool", ["x"], ["y"], kernel_shape=[2, 2], dilations=[2, 2]), "it is dilated"),
        (graph_of("BatchNormalization", ["x", "s", "b", "m", "v"], ["y"], training_mode=1), "training mode"),
        (graph_of("ConvTranspose", ["x", "w"], ["y"], output_shape=[10, 10]), "output_shape"),
        (graph_of("Dropout", ["x", "ratio", "on"], ["y"], {"ratio": np.float32(0.5), "on": True}), "training_mode"),
        (graph_of("Dropout", ["x"], ["y", "mask"]), "'mask' is used"),
        (graph_of("IsInf", ["x"], ["y"], detect_negative=0), "one sign only"),
        (graph_of("LayerNormalization", ["x", "s"], ["y", "mean"]), "'mean' is used"),
        (graph_of("NonMaxSuppression", NMS, ["y"]), "limits are known at run time only"),
        (graph_of("RoiAlign", ["x", "r", "i"], ["y"], mode="max"), "mode is max"),
        (graph_of("SpaceToDepth", ["x"], ["y"], blocksize=2, mode="CRD"), "mode is CRD"),
        (graph_of("SplitToSequence", ["x"], ["y"], keepdims=0), "keepdims is 0"),
    ],
)
def test_a_wrong_form_is_refused_by_name(graph: Any, reason: str) -> None:
    with pytest.raises(ModelError, match=f"culprit.*{reason}"):
        check_pitfalls(graph)


@pytest.mark.parametrize(
    "graph",
    [
        graph_of("AveragePool", ["x"], ["y"], kernel_shape=[2, 2], dilations=[1, 1]),
        graph_of("Dropout", ["x", "ratio", "off"], ["y"], {"ratio": np.float32(0.5), "off": False}),
        graph_of("LayerNormalization", ["x", "s"], ["y"]),
        graph_of("NonMaxSuppression", NMS, ["y"], LIMITS),
        graph_of("IsInf", ["x"], ["y"]),
    ],
)
def test_a_right_form_passes(graph: Any) -> None:
    check_pitfalls(graph)


def test_the_importer_asks(recwarn: pytest.WarningsRecorder) -> None:
    from tvm_neuron.frontend import from_onnx

    node = helper.make_node("AveragePool", ["x"], ["y"], name="pool", kernel_shape=[2, 2], dilations=[2, 2])
    with pytest.raises(ModelError, match="pool"):
        from_onnx(make_model([node], {"x": [1, 4, 8, 8]}, ["y"]))
