"""Whole networks of other kinds than the light ones: each agrees with onnxruntime as far as bf16 lets it."""

import numpy as np
import onnx
import pytest

from tests.models.agreement import Agreement, Case, random_inputs, run_exactly
from tests.models.zoo import NETWORKS

pytestmark = pytest.mark.slow
ON_CPU = {
    "yolov4": {"NonMaxSuppression"},
    "ssd300": {"NonMaxSuppression"},
    "lstm_seq2seq": {"Gather"},
    "tacotron_encoder": {"Gather"},
}
"""Kinds of operators, at most, that each leaves to the CPU."""
LIKE_OTHERS = {"vgg16", "resnet152", "yolov3", "yolov4", "lstm_seq2seq", "openpose"}
"""ResNet-50 is among the light networks, on both chips; SSD has heads and boxes, as YOLO, Tacotron an LSTM, U-Net what
OpenPose has."""
MOST_EXPLAINED = 0.3  # a bound above it would hold for nearly anything


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.many if name in LIKE_OTHERS else ()) for name in NETWORKS]
)
def test_agrees_with_onnxruntime(name: str) -> None:
    model = NETWORKS[name]()
    found = Case(model, random_inputs(model)).run("inf1")
    assert set(found.on_cpu) <= ON_CPU.get(name, set())
    assert max(found.bounds.values()) < MOST_EXPLAINED
    assert found.errors[found.worst] <= found.bounds[found.worst], f"{found.worst}: {found.errors} {found.bounds}"
    check_suppression(model, found)


def check_suppression(model: onnx.ModelProto, found: Agreement) -> None:
    """What is kept of our boxes is just what onnxruntime keeps of them."""
    kept = set(found.outputs) - set(found.errors)
    if kept:
        rest = onnx.utils.Extractor(model).extract_model([*found.errors], [*kept])
        wanted = run_exactly(rest, {name: found.outputs[name] for name in found.errors})
        for name in kept:
            assert len(wanted[name]) > 0
            np.testing.assert_array_equal(found.outputs[name], wanted[name])
