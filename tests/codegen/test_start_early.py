"""Arithmetic on what several kernels write: chunks that don't need the last of them come before it."""

import numpy as np
import onnx
import pytest

from tests.codegen.dense import dense
from tests.codegen.graphs import graph_of
from tests.codegen.interpreter import run_graph, run_kernels
from tests.models.agreement import Case, random_inputs, relative_error
from tests.stages.networks import compile_model, run
from tvm_neuron.codegen.simplify import make_kernels
from tvm_neuron.codegen.steps import without
from tvm_neuron.hw import load_device
from tvm_neuron.schedule.kernel import Contraction, Kernel
from tvm_neuron.schedule.rule import load_rules
from tvm_neuron.sim import time_program


def _kernels(model: onnx.ModelProto) -> list[Kernel]:
    return make_kernels(graph_of(model), load_rules(), load_device("inf2"))[0]


def _norms(kernels: list[Kernel], name: str) -> list[tuple[int, int]]:
    """Place and channels of each kernel of the norm that is arithmetic."""
    return [(n, k.channel.extent) for n, k in enumerate(kernels) if k.origins[0].name == name and k.root is None]


def _convolution(kernels: list[Kernel], name: str) -> int:
    return next(n for n, k in enumerate(kernels) if k.origins[0].name == name and isinstance(k.root, Contraction))


def test_old_channels_come_before_the_layer_that_makes_the_new_ones() -> None:
    kernels = _kernels(dense(256))
    (early, most), (late, rest) = _norms(kernels, "norm2")
    assert early < _convolution(kernels, "conv1") < late < _convolution(kernels, "conv2")
    assert (most, rest) == (256, 64)


def test_a_chunk_that_holds_a_new_channel_waits() -> None:
    kernels = _kernels(dense(160))
    assert [channels for _, channels in _norms(kernels, "norm2")] == [128, 96]


@pytest.mark.parametrize("channels", [32, 96])
def test_what_lies_in_one_chunk_is_not_cut(channels: int) -> None:
    kernels = _kernels(dense(channels, layers=2))
    assert [found for _, found in _norms(kernels, "norm1")] == [channels + 32]


@pytest.mark.parametrize("channels", [96, 128, 224, 416])
def test_the_meaning_stays(channels: int) -> None:
    graph = graph_of(dense(channels))
    inputs = {"x": np.random.default_rng(1).standard_normal((1, channels, 6, 6))}
    wanted = run_graph(graph, inputs)
    (y,) = graph.outputs
    kernels, partition_of = make_kernels(graph, load_rules(), load_device("inf2"))
    found = run_kernels(kernels, partition_of, graph, inputs)
    np.testing.assert_allclose(found[y], wanted[y], rtol=1e-5, atol=1e-5)  # scales are folded in float32


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
def test_as_onnxruntime(chip: str) -> None:
    model = dense(224)
    case = Case(model, random_inputs(model))
    found = run(compile_model(model, f"neuron/{chip}"), case.inputs, "strict")["y"]
    assert relative_error(found, case.exact["y"]) < case.bounds["y"]


def test_the_program_is_quicker() -> None:
    model = dense(512, layers=4, size=28)
    early = compile_model(model, "neuron/inf2")
    with without("start_early"):
        late = compile_model(model, "neuron/inf2")
    quick, slow = (time_program(found.program, found.device) for found in (early, late))
    assert quick.total_ps < slow.total_ps
    assert quick.busy_ps["act"] == slow.busy_ps["act"]
