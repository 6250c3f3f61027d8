"""Arithmetic on what several kernels write: chunks that don't need the last of them come before it."""

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.codegen.graphs import graph_of
from tests.codegen.interpreter import run_graph, run_kernels
from tests.models.agreement import Case, random_inputs, relative_error
from tests.onnx_models import make_model
from tests.stages.networks import compile_model, run
from tvm_neuron.codegen import simplify
from tvm_neuron.codegen.simplify import make_kernels
from tvm_neuron.hw import load_device
from tvm_neuron.schedule.kernel import Contraction, Kernel
from tvm_neuron.schedule.rule import load_rules
from tvm_neuron.sim import time_program


def _dense(channels: int, layers: int = 3, size: int = 6) -> onnx.ModelProto:
    """Layers that each add 32 channels to what those before them made: norm, ReLU and convolution."""
    rng = np.random.default_rng(channels)
    weights, nodes, last = {}, [], "x"
    for i in range(layers):
        width = channels + 32 * i
        weights[f"w{i}"] = (rng.standard_normal((32, width, 3, 3)) / np.sqrt(9 * width)).astype(np.float32)
        for name in ("scale", "var"):
            weights[f"{name}{i}"] = rng.uniform(0.5, 1.5, width).astype(np.float32)
        for name in ("shift", "mean"):
            weights[f"{name}{i}"] = rng.standard_normal(width).astype(np.float32)
        norm = [last, *(f"{name}{i}" for name in ("scale", "shift", "mean", "var"))]
        nodes += [
            helper.make_node("BatchNormalization", norm, [f"n{i}"], name=f"norm{i}"),
            helper.make_node("Relu", [f"n{i}"], [f"r{i}"]),
            helper.make_node("Conv", [f"r{i}", f"w{i}"], [f"c{i}"], name=f"conv{i}", pads=[1, 1, 1, 1]),
            helper.make_node("Concat", [last, f"c{i}"], [f"y{i}" if i < layers - 1 else "y"], axis=1),
        ]
        last = f"y{i}"
    return make_model(nodes, {"x": (1, channels, size, size)}, ["y"], weights)


def _kernels(model: onnx.ModelProto) -> list[Kernel]:
    return make_kernels(graph_of(model), load_rules(), load_device("inf2"))[0]


def _norms(kernels: list[Kernel], name: str) -> list[tuple[int, int]]:
    """Place and channels of each kernel of the norm that is arithmetic."""
    return [(n, k.channel.extent) for n, k in enumerate(kernels) if k.origins[0].name == name and k.root is None]


def _convolution(kernels: list[Kernel], name: str) -> int:
    return next(n for n, k in enumerate(kernels) if k.origins[0].name == name and isinstance(k.root, Contraction))


def test_old_channels_come_before_the_layer_that_makes_the_new_ones() -> None:
    kernels = _kernels(_dense(256))
    (early, most), (late, rest) = _norms(kernels, "norm2")
    assert early < _convolution(kernels, "conv1") < late < _convolution(kernels, "conv2")
    assert (most, rest) == (256, 64)


def test_a_chunk_that_holds_a_new_channel_waits() -> None:
    kernels = _kernels(_dense(160))
    assert [channels for _, channels in _norms(kernels, "norm2")] == [128, 96]


@pytest.mark.parametrize("channels", [32, 96])
def test_what_lies_in_one_chunk_is_not_cut(channels: int) -> None:
    kernels = _kernels(_dense(channels, layers=2))
    assert [found for _, found in _norms(kernels, "norm1")] == [channels + 32]


@pytest.mark.parametrize("channels", [96, 128, 224, 416])
def test_the_meaning_stays(channels: int) -> None:
    graph = graph_of(_dense(channels))
    inputs = {"x": np.random.default_rng(1).standard_normal((1, channels, 6, 6))}
    wanted = run_graph(graph, inputs)
    (y,) = graph.outputs
    kernels, partition_of = make_kernels(graph, load_rules(), load_device("inf2"))
    found = run_kernels(kernels, partition_of, graph, inputs)
    np.testing.assert_allclose(found[y], wanted[y], rtol=1e-5, atol=1e-5)  # scales are folded in float32


@pytest.mark.parametrize("mode", ["nest", "strict"])
@pytest.mark.parametrize("chip", ["inf1", "inf2"])
def test_as_onnxruntime(chip: str, mode: str) -> None:
    model = _dense(224)
    case = Case(model, random_inputs(model))
    found = run(compile_model(model, f"neuron/{chip}"), case.inputs, mode)["y"]
    assert relative_error(found, case.exact["y"]) < case.bounds["y"]


def test_the_program_is_quicker(monkeypatch: pytest.MonkeyPatch) -> None:
    model = _dense(512, layers=4, size=28)
    early = compile_model(model, "neuron/inf2")
    monkeypatch.setattr(simplify, "start_early", lambda kernels, partition_of: kernels)
    late = compile_model(model, "neuron/inf2")
    quick, slow = (time_program(found.program, found.device) for found in (early, late))
    assert quick.total_ps < slow.total_ps
    assert quick.busy_ps["act"] == slow.busy_ps["act"]
