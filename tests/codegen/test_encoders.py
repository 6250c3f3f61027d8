"""Encoders of transformers run on the core as a whole: right to bfloat16's precision, near what bandwidth allows."""

import json
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import tvm

import tvm_neuron
from tests.codegen.transformers import Encoder
from tests.models.rounding import emulate_bfloat16
from tests.onnx_models import Arrays, reference
from tvm_neuron import neff, relay, runtime
from tvm_neuron.hw import load_device
from tvm_neuron.hw.load import device_to_dict
from tvm_neuron.profile import Report
from tvm_neuron.sim import Machine


def run(encoder: Encoder, target: object) -> Report:
    """Checks placement and numbers, in every mode of the machine."""
    model, inputs = encoder.model(), encoder.inputs()
    mod, params = relay.frontend.from_onnx(model)
    library = relay.build(mod, target=target, params=params)
    report = tvm_neuron.report(library)
    assert {row.where for row in report.placement} <= {"neuroncore", "compile time"}, report.placement
    executor = relay.graph_executor.GraphModule(library["default"](tvm.device("neuron")))
    executor.run(**inputs)
    actual = executor.get_output(0).numpy()
    check_numbers(encoder, inputs, actual)
    (data,) = runtime.neffs(library).values()
    compiled = neff.read(data)
    (strict,) = Machine(compiled.program, compiled.device, compiled.weights).run(inputs, "strict", 0).values()
    assert strict.tobytes() == actual.tobytes()
    return report


def check_numbers(encoder: Encoder, inputs: Arrays, actual: np.ndarray) -> None:
    """At most twice the error that onnxruntime makes when it rounds every tensor to bfloat16."""
    (wanted,) = reference(encoder.model(), inputs)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(emulate_bfloat16(encoder.model()).SerializeToString(), options)
    (rounded,) = session.run(None, inputs)
    assert np.linalg.norm(actual - wanted) <= 2 * np.linalg.norm(rounded - wanted)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["neuron", "neuron/inf2"])
@pytest.mark.parametrize(
    ("hidden", "heads", "rows", "batch"),
    [(64, 4, 32, 1), (60, 3, 33, 1), (192, 2, 50, 1), (128, 2, 40, 2), (96, 3, 20, 5)],
)
def test_one_layer(hidden: int, heads: int, rows: int, batch: int, target: str) -> None:
    run(Encoder(hidden, heads, rows, batch=batch), target)


@pytest.mark.slow
def test_two_layers() -> None:
    report = run(Encoder(256, 4, 128, layers=2), "neuron")
    assert report.spill_bytes == 0


@pytest.mark.slow
def test_two_layers_as_wide_as_bert_base() -> None:
    report = run(Encoder(768, 12, 128, layers=2), "neuron")
    assert report.spill_bytes == 0
    assert report.latency_us <= 1.05 * report.roofline_us


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "kib"),
    [((64, 4, 70, 1), 39), ((96, 2, 140, 2), 39), ((192, 2, 50, 1), 39), ((128, 8, 200, 2), 46)],
)
def test_little_memory(size: tuple[int, int, int, int], kib: int, tmp_path: Path) -> None:
    """Operands and results of products are staged in parts."""
    raw = device_to_dict(load_device("inf1"))
    raw |= {"name": "little", "sbuf_bytes_per_partition": {"value": kib * 1024, "source": "this test"}}
    path = tmp_path / "little.json"
    path.write_text(json.dumps(raw))
    hidden, heads, rows, batch = size
    run(Encoder(hidden, heads, rows, batch=batch), {"tag": "neuron", "device": str(path)})
