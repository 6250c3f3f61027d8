"""A half of a concatenation waits in DRAM while the PE array waits for weights that its memory lets come before."""

from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.codegen.graphs import graph_of
from tests.codegen.interpreter import run_kernels
from tests.codegen.layers import Layers
from tests.models.agreement import Case, random_inputs, relative_error, run_exactly
from tests.stages.networks import run
from tvm_neuron.codegen.function import compile_graph
from tvm_neuron.codegen.kernels.storage_dtypes import choose_dtypes
from tvm_neuron.codegen.options import BuildOptions
from tvm_neuron.codegen.simplify import make_kernels
from tvm_neuron.codegen.stage import Stage
from tvm_neuron.codegen.tiles.begin_late import begin_late
from tvm_neuron.codegen.tiles.wait_in_dram import wait_in_dram
from tvm_neuron.hw import load_device
from tvm_neuron.program import Program
from tvm_neuron.schedule.graph import Graph
from tvm_neuron.schedule.rule import load_rules
from tvm_neuron.schedule.tensor import Tensor

DEVICE = replace(load_device("inf1"), sbuf_bytes_per_partition=24 * 1024)


def _network(ahead: int = 6, heavy: int = 3, behind: int = 3, size: int = 40) -> onnx.ModelProto:
    """A half; layers of large maps, layers of many weights, layers of large maps again; and the other half."""
    layers = Layers(ahead + heavy)
    conv, nodes = layers.conv, layers.nodes

    last = first = conv("x", "first", 16, 128, 1)
    conv(first, "half", 128, 128, 1)
    for n in range(ahead):
        last = conv(last, f"ahead{n}", 128, 128, 3)
    nodes.append(helper.make_node("GlobalMaxPool", [last], ["gate"], name="gate"))
    gate = "gate"
    for n in range(heavy):
        gate = conv(gate, f"heavy{n}", 128 if n == 0 else 1024, 128 if n == heavy - 1 else 1024, 1)
    nodes.append(helper.make_node("Mul", [last, gate], ["gated"], name="gated"))
    last = "gated"
    for n in range(behind):
        last = conv(last, f"behind{n}", 128, 128, 3)
    conv(last, "rest", 128, 128, 1)
    nodes.append(helper.make_node("Concat", ["rest", "half"], ["both"], axis=1))
    conv("both", "z", 256, 8, 1)
    return layers.model({"x": (1, 16, size, size)}, ["z"])


def _stage(graph: Graph) -> Stage:
    """Halves wait as tensors of their own."""
    kernels, partition_of = make_kernels(graph, load_rules(), DEVICE)
    dtypes = choose_dtypes(kernels)
    kernels = begin_late(kernels, partition_of, dtypes)
    return Stage("network", kernels, partition_of, dtypes, {}, {})


def _transfers(stage: Stage, stored: Tensor) -> list[int]:
    return [n for n, k in enumerate(stage.kernels) if stored in k.tensors]


def test_it_goes_out_and_comes_back_while_dma_has_little_to_do() -> None:
    stage = _stage(graph_of(_network()))
    found = wait_in_dram(stage, DEVICE)
    (stored,) = found.spilled
    (begun,) = (t for t in stage.partition_of if t.name.endswith(".begun"))
    assert stored.shape == begun.shape
    store, load = (found.kernels[n] for n in _transfers(found, stored))
    assert store.by_dma
    assert load.by_dma
    assert list(store.sources()) == [begun]
    assert all(kernel is load for kernel in found.kernels if stored in kernel.sources())
    out, back = _transfers(found, stored)
    order = [n for n, k in enumerate(found.kernels) if k.origins[0].name.startswith("heavy") and k.root]
    assert out < order[0]
    assert order[-1] < back
    # its memory is left when it has gone, and nothing waits for what comes back
    assert {"ahead0", "ahead1"} <= {k.origins[0].name for k in found.kernels[: out + 1]}
    assert {"behind2"} <= {k.origins[0].name for k in found.kernels[back:]}


@pytest.mark.parametrize(
    "different",
    [{"heavy": 0}, {"ahead": 3}, {"behind": 1}],
    ids=["no layers wait for weights", "DMA brings weights before", "DMA brings weights up to its reader"],
)
def test_elsewhere_it_stays(different: dict[str, int]) -> None:
    stage = _stage(graph_of(_network(**different)))
    assert wait_in_dram(stage, DEVICE).kernels == stage.kernels


def test_what_layers_read_themselves_stays() -> None:
    """Only the copy's target could be filled from DRAM."""
    stage = _stage(graph_of(_network()))
    copy = next(n for n, k in enumerate(stage.kernels) if any(t.name.endswith(".begun") for t in k.sources()))
    other = replace(stage.kernels[copy], out=Tensor("other", stage.kernels[copy].out.shape, "float32"))
    stage.partition_of[other.out], stage.dtypes[other.out] = 1, stage.dtypes[stage.kernels[copy].out]
    for place in (copy, copy + 1):
        twice = replace(stage, kernels=[*stage.kernels[:place], other, *stage.kernels[place:]])
        assert wait_in_dram(twice, DEVICE).kernels == twice.kernels


def test_kernels_mean_the_same() -> None:
    model = _network()
    graph, inputs = graph_of(model), random_inputs(model)
    found = wait_in_dram(_stage(graph), DEVICE)
    assert found.spilled
    (z,) = graph.outputs
    actual = run_kernels(found.kernels, found.partition_of, graph, {"x": inputs["x"].astype(np.float64)})[z]
    np.testing.assert_allclose(actual, run_exactly(model, inputs)["z"], rtol=1e-4, atol=1e-5)


def _stored(program: Program) -> list[str]:
    return [tensor.name for tensor in program.tensors if tensor.name.endswith(".begun.stored")]


@pytest.mark.parametrize("mode", ["nest", "strict"])
def test_outputs_are_the_same(mode: str) -> None:
    model = _network()
    case = Case(model, random_inputs(model))
    neff = compile_graph(graph_of(model), "network", DEVICE, BuildOptions())
    assert _stored(neff.program)
    found = run(neff, case.inputs, mode)
    assert relative_error(found["z"], case.exact["z"]) < case.bounds["z"]
