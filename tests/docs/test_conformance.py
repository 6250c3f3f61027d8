"""The runner of onnx's backend suite tells right, refused and, given a wrong expectation, wrong."""

from dataclasses import replace

import numpy as np
import pytest
from onnx.backend.test.loader import load_model_tests

from benchmarks import conformance

pytestmark = pytest.mark.filterwarnings("ignore")  # making onnx's cases warns of overflows that they mean


def test_right_and_refused() -> None:
    found = {outcome.name: outcome for outcome in conformance.run(["test_relu", "test_image_decoder_decode_bmp_rgb"])}
    assert (found["test_relu"].result, found["test_relu"].on_cpu) == ("passed", 0)
    assert found["test_image_decoder_decode_bmp_rgb"].result == "refused"
    assert "ImageDecoder" in found["test_image_decoder_decode_bmp_rgb"].reason


def test_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    case = next(case for case in load_model_tests(kind="node") if case.name == "test_sigmoid")
    inputs, outputs = case.data_sets[0]
    changed = replace(case, data_sets=[(inputs, [np.asarray(outputs[0]) + 0.25])])
    monkeypatch.setattr(conformance, "load_model_tests", lambda kind: [changed] if kind == "node" else [])
    (outcome,) = conformance.run()
    assert outcome.result == "wrong"
    assert "differs by up to 0.2" in outcome.reason
