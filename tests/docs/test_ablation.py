"""The ablation: a step that is left out is not done, and the table counts the networks that change by it."""

import json
from importlib import import_module
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


def test_what_changes_nothing_is_left_out_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compile for the whole, and one for all that are of no use to a convolution alone."""
    (tmp_path / "few" / "dynamo").mkdir(parents=True)
    onnx.save(_model(), tmp_path / "few" / "dynamo" / "model.onnx")
    calls, whole = [], ablation.latency_us
    monkeypatch.setattr(ablation, "latency_us", lambda *given: calls.append(given) or whole(*given))
    file = tmp_path / "found.jsonl"
    ablation._measure("few", "inf2", ["slices", "maxima", "split_windows", "recurrences"], tmp_path, file)
    assert len(calls) == 2
    times = [json.loads(line)["latency_us"] for line in file.read_text().splitlines()]
    assert len(times) == 5
    assert len(set(times)) == 1


@pytest.mark.parametrize("name", ablation.INSIDE)
def test_what_is_inside_of_steps_is_left_out_and_comes_back(name: str) -> None:
    module, function = f"tvm_neuron.codegen.{ablation.INSIDE[name][0]}".rsplit(".", 1)
    before = getattr(import_module(module), function)
    with ablation._left_out([name]):
        assert getattr(import_module(module), function) is ablation.INSIDE[name][1]
    assert getattr(import_module(module), function) is before


def test_steps_have_names_of_their_own_and_are_left_out_only_inside() -> None:
    names = [*(step.name for step in ablation.STEPS), *ablation.INSIDE]
    assert len(names) == len(set(names))
    with without("fuse"), without("lay_out"):
        assert [step.name for step in ablation.STEPS if not step.is_taken] == ["lay_out", "fuse"]
    assert all(step.is_taken for step in ablation.STEPS)
