"""The ablation: a step that is left out is not done, and the table counts the networks that change by it."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from benchmarks import ablation
from tests.onnx_models import make_model
from tvm_neuron.codegen.steps import without


def _model() -> onnx.ModelProto:
    """A convolution of three channels, of which several rows are packed."""
    weights = np.random.default_rng(0).standard_normal((32, 3, 7, 7)).astype(np.float32)
    node = helper.make_node("Conv", ["x", "w"], ["y"], strides=[2, 2], pads=[3] * 4)
    return make_model([node], {"x": (1, 3, 32, 32)}, ["y"], {"w": weights})


def test_a_network_without_a_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "few" / "dynamo").mkdir(parents=True)
    onnx.save(_model(), tmp_path / "few" / "dynamo" / "model.onnx")
    file = tmp_path / "found.jsonl"
    ablation._measure("few", "inf2", ["pack_depth", "lay_out"], tmp_path, file)
    whole, packed, unlaid = map(json.loads, file.read_text().splitlines())
    assert packed["latency_us"] > 1.05 * whole["latency_us"]
    assert "message" in unlaid
    ablation._measure("few", "inf2", ["pack_depth"], tmp_path, file)  # known already
    assert len(file.read_text().splitlines()) == 3
    row = next(line for line in ablation.table([whole, packed, unlaid]).splitlines() if line.startswith("| pack_depth"))
    assert row.startswith("| pack_depth | 1 | 1: mean +")
    assert "few, inf2, without pack_depth" in capsys.readouterr().out


def test_steps_have_names_of_their_own_and_are_left_out_only_inside() -> None:
    names = [step.name for step in ablation.STEPS]
    assert len(names) == len(set(names))
    with without("fuse"), without("lay_out"):
        assert [step.name for step in ablation.STEPS if not step.is_taken] == ["lay_out", "fuse"]
    assert all(step.is_taken for step in ablation.STEPS)
