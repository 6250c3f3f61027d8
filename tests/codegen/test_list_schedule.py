"""Kernels in other orders: the same numbers, each after what it needs, and engines that wait less."""

import numpy as np
import pytest

from tests.codegen.graphs import graph_of
from tests.codegen.interpreter import run_graph, run_kernels
from tests.codegen.test_overlap import _stage
from tests.codegen.transformers import Encoder
from tests.onnx_models import reference
from tests.stages.networks import compile_model, images, run, small_network
from tvm_neuron.codegen.choose import LISTED
from tvm_neuron.codegen.emit_stage import emit_stage
from tvm_neuron.codegen.overlap.list_schedule import list_schedules
from tvm_neuron.codegen.residents import place_stage
from tvm_neuron.codegen.stage import Stage
from tvm_neuron.codegen.steps import without
from tvm_neuron.hw import load_device
from tvm_neuron.sim import time_program

ENCODER = Encoder(64, 4, 40, layers=2)
ADDED = "add_after_contractions"  # rounds what it adds up beforehand to float32, and leaves this encoder less to do


def _others(stage: Stage, chip: str) -> list[Stage]:
    device = load_device(chip)
    emitted = emit_stage(stage, place_stage(stage, device, keep_weights=False), device, keep_weights=False)
    return list(list_schedules(stage, emitted.nodes, device))


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
def test_the_same_kernels_compute_the_same(chip: str) -> None:
    """In float64, each in its new place: what it reads must be there."""
    with without(ADDED):
        graph, stage = _stage(ENCODER, chip)
    inputs = {name: value.astype(np.float64) for name, value in ENCODER.inputs().items()}
    wanted = run_graph(graph_of(ENCODER.model()), inputs)
    (result,) = (value for tensor, value in wanted.items() if tensor.kind == "output")
    others = _others(stage, chip)
    assert others
    for other in others:
        assert other.kernels != stage.kernels
        assert sorted(map(id, other.kernels)) == sorted(map(id, stage.kernels))
        found = run_kernels(other.kernels, other.partition_of, graph, inputs)
        (value,) = (value for tensor, value in found.items() if tensor.kind == "output")
        np.testing.assert_allclose(value, result, 1e-9, 1e-9)


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
def test_engines_wait_less(chip: str) -> None:
    """Values are transposed while scores are made, and not after all that comes before in the model."""
    device = load_device(chip)
    with without(LISTED.name, ADDED):
        usual = compile_model(ENCODER.model(), f"neuron/{chip}").program
    with without(ADDED):
        found = compile_model(ENCODER.model(), f"neuron/{chip}").program
    assert time_program(found, device).total_ps < time_program(usual, device).total_ps


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
def test_what_was_reordered_is_right(chip: str) -> None:
    """Beside onnxruntime: ten roundings to bfloat16 of numbers around 1."""
    for model, inputs in ((ENCODER.model(), ENCODER.inputs()), (small_network(), images())):
        (wanted,) = reference(model, inputs)
        (actual,) = run(compile_model(model, f"neuron/{chip}"), inputs).values()
        assert np.linalg.norm(actual - wanted) <= 10 * 2.0**-9 * np.linalg.norm(wanted)
