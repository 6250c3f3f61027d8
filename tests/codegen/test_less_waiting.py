"""What lies idle for long takes less memory: halves of concatenations wait apart, what shrinks a map comes early."""

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
from tvm_neuron.codegen.tiles.less_waiting import with_less_waiting
from tvm_neuron.codegen.tiles.run_in_tiles import division
from tvm_neuron.codegen.tiles.shrink_early import shrink_early
from tvm_neuron.codegen.tiles.usage import usage
from tvm_neuron.hw import load_device
from tvm_neuron.schedule.graph import Graph
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.rule import load_rules

DEVICE = load_device("inf1")


def _detector(
    half: int = 128, back: int = 32, layers: int = 5, size: int = 6, is_padded: bool = False
) -> onnx.ModelProto:
    """A half that waits for the other one; then a layer with `back` channels, which reads their map long after."""
    network = Layers(half + back)
    conv, nodes = network.conv, network.nodes

    last = first = conv("x", "first", 16, 32, 1)
    conv(first, "half", 32, half, 1)
    for n in range(layers):
        last = conv(last, f"one{n}", 32, 32, 3)
    conv(last, "rest", 32, 128, 1)
    nodes.append(helper.make_node("Concat", ["rest", "half"], ["both"], axis=1))
    last = conv("both", "wide", 128 + half, 192, 1)
    for n in range(layers):
        if n == layers - 1:
            conv("wide", "back", 192, back, 1)
        last = conv(last, f"two{n}", 192 if n == 0 else 32, 32, 3)
    if is_padded:
        conv("back", "after", back, 32, 3)
    nodes.append(helper.make_node("Concat", ["after" if is_padded else "back", last], ["y"], axis=1))
    conv("y", "z", back + 32 if not is_padded else 64, 8, 1)
    return network.model({"x": (1, 16, size, size)}, ["z"])


def _stage(graph: Graph) -> Stage:
    kernels, partition_of = make_kernels(graph, load_rules(), DEVICE)
    return Stage("detector", kernels, partition_of, choose_dtypes(kernels), {}, {})


def _begun_late(stage: Stage) -> Stage:
    partition_of, dtypes = dict(stage.partition_of), dict(stage.dtypes)
    kernels = begin_late(stage.kernels, partition_of, dtypes)
    return replace(stage, kernels=kernels, partition_of=partition_of, dtypes=dtypes)


def _order(stage: Stage, kernels: list[Kernel]) -> list[str]:
    assert set(kernels) == set(stage.kernels)
    return [kernel.origins[0].name for kernel in kernels if kernel.root is not None]


def _alive(stage: Stage) -> int:
    """The most bytes of a partition while the first chain runs."""
    steps = [n for n, kernel in enumerate(stage.kernels) if kernel.origins[0].name == "one1" and kernel.root]
    return usage(stage.kernels, stage.partition_of, stage.dtypes, stage.in_dram()).alive[steps[0]]


def test_a_half_waits_as_a_tensor_of_its_own() -> None:
    stage = _stage(graph_of(_detector()))
    found = _begun_late(stage)
    (begun,) = found.partition_of.keys() - stage.partition_of.keys()
    assert begun.shape == (1, 128, 6, 6)
    (copy,) = (kernel for kernel in found.kernels if begun in kernel.sources())
    assert not copy.by_dma
    assert [k.origins[0].name for k in found.kernels if k.out is copy.out] == ["rest", "rest"]
    assert _alive(found) < _alive(stage)


@pytest.mark.parametrize(
    "different",
    [{"half": 64, "layers": 1}, {"layers": 1}],
    ids=["the rest comes soon, of less than a chunk", "the rest comes soon"],
)
def test_what_waits_for_little_stays_in_its_place(different: dict) -> None:
    stage = _stage(graph_of(_detector(**different)))
    assert _begun_late(stage).kernels == stage.kernels


def test_what_begins_within_a_chunk_of_partitions_stays_in_its_place() -> None:
    """No engine moves it there from the first partition on."""
    stage = _stage(graph_of(_detector()))
    tensor = next(k.out for k in stage.kernels if k.origins[0].name == "half")
    dim = stage.partition_of[tensor]
    shifted = [
        replace(k, out_maps=tuple(m + type(m)(-64) if d == dim and k.origins[0].name == "half" else m
                                  for d, m in enumerate(k.out_maps))) if k.out is tensor else k
        for k in stage.kernels
    ]  # fmt: skip
    assert _begun_late(replace(stage, kernels=shifted)).kernels == shifted


def test_a_layer_that_shrinks_what_waits_comes_early() -> None:
    stage = _stage(graph_of(_detector()))
    order = _order(stage, shrink_early(stage.kernels, stage.partition_of, stage.dtypes))
    assert order.index("back") == order.index("two0") + 1


@pytest.mark.parametrize(
    "different",
    [{"back": 384}, {"layers": 1}, {"is_padded": True}],
    ids=["it makes more", "it comes soon anyway", "its result has a border"],
)
def test_other_layers_keep_their_place(different: dict) -> None:
    stage = _stage(graph_of(_detector(**different)))
    assert shrink_early(stage.kernels, stage.partition_of, stage.dtypes) == stage.kernels


def test_kernels_mean_the_same() -> None:
    model = _detector()
    graph, inputs = graph_of(model), random_inputs(model)
    stage = _stage(graph)
    found = _begun_late(replace(stage, kernels=shrink_early(stage.kernels, stage.partition_of, stage.dtypes)))
    assert len(found.kernels) == len(stage.kernels) + 2  # what comes early is of a concatenation, too
    (z,) = graph.outputs
    actual = run_kernels(found.kernels, found.partition_of, graph, {"x": inputs["x"].astype(np.float64)})[z]
    np.testing.assert_allclose(actual, run_exactly(model, inputs)["z"], rtol=1e-4, atol=1e-5)


def test_only_where_tensors_do_not_fit() -> None:
    stage = _stage(graph_of(_detector()))
    assert with_less_waiting(stage, DEVICE) is stage
    _, zones = division(stage, DEVICE)
    needed = max(usage(stage.kernels, stage.partition_of, stage.dtypes, stage.in_dram()).alive)
    most = (zones.tensors_at + needed // 2) * 3 // 2  # weights have a third of it
    found = with_less_waiting(stage, replace(DEVICE, sbuf_bytes_per_partition=most))
    assert len(found.kernels) == len(stage.kernels) + 2


@pytest.mark.parametrize("mode", ["nest", "strict"])
def test_outputs_are_the_same_where_memory_is_short(mode: str) -> None:
    model = _detector(size=48)
    case = Case(model, random_inputs(model))
    small = replace(DEVICE, sbuf_bytes_per_partition=52 * 1024)
    found = run(compile_graph(graph_of(model), "detector", small, BuildOptions()), case.inputs, mode)
    assert relative_error(found["z"], case.exact["z"]) < case.bounds["z"]
