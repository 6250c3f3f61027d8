"""The first layers of a batch in turns of some images: the same numbers, weights that come for several images."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.codegen.graphs import graph_of
from tests.codegen.interpreter import run_kernels
from tests.models.agreement import Case, random_inputs, relative_error
from tests.onnx_models import make_model
from tests.stages.networks import compile_model, run
from tests.stages.test_small_memory import shrunk
from tvm_neuron.codegen.kernels.storage_dtypes import choose_dtypes
from tvm_neuron.codegen.simplify import make_kernels
from tvm_neuron.codegen.tiles.turns import Batch, in_turns
from tvm_neuron.hw import load_device
from tvm_neuron.schedule.kernel import Contraction
from tvm_neuron.schedule.rule import load_rules
from tvm_neuron.sim import time_program

SAME = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}


def _network(batch: int, size: int) -> onnx.ModelProto:
    """Large maps of few channels, then small ones of many with a sum across, then layers over all images."""
    rng = np.random.default_rng(5)
    shapes = {"w1": (32, 3, 3, 3), "w2": (32, 32, 3, 3), "w3": (128, 32, 3, 3), "w4": (128, 128, 3, 3)}
    shapes |= {"w5": (128, 128, 3, 3), "w6": (128, 128, 1, 1), "w7": (16, 128, 3, 3)}
    weights = {n: (rng.standard_normal(s) / np.sqrt(np.prod(s[1:]))).astype(np.float32) for n, s in shapes.items()}
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["c1"], **SAME),
        helper.make_node("Relu", ["c1"], ["r1"]),
        helper.make_node("MaxPool", ["r1"], ["p"], strides=[2, 2], **SAME),
        helper.make_node("Conv", ["p", "w2"], ["c2"], **SAME),
        helper.make_node("Relu", ["c2"], ["r2"]),
        helper.make_node("Conv", ["r2", "w3"], ["c3"], strides=[2, 2], **SAME),
        helper.make_node("Relu", ["c3"], ["r3"]),
        helper.make_node("Conv", ["r3", "w4"], ["c4"], **SAME),
        helper.make_node("Add", ["c4", "r3"], ["sum"]),
        helper.make_node("Conv", ["sum", "w5"], ["c5"], strides=[2, 2], **SAME),
        helper.make_node("Relu", ["c5"], ["r5"]),
        helper.make_node("Conv", ["r5", "w6"], ["c6"], kernel_shape=[1, 1]),
        helper.make_node("Add", ["c6", "r5"], ["s6"]),
        helper.make_node("Conv", ["s6", "w7"], ["y"], **SAME),
    ]
    return make_model(nodes, {"x": (batch, 3, size, size)}, ["y"], weights)


@pytest.mark.parametrize("batch", [3, 4, 5])
def test_turns_keep_the_meaning(batch: int) -> None:
    graph = graph_of(_network(batch, 32))
    device = load_device("inf2")
    kernels, partition_of = make_kernels(graph, load_rules(), device)
    dtypes = choose_dtypes(kernels)
    contractions = [n for n, kernel in enumerate(kernels) if isinstance(kernel.root, Contraction)]
    count = contractions[4] + 1  # to the fifth, which the sixth and the sum after it read
    group = Batch(kernels, count, set(graph.outputs), set(graph.inputs), partition_of, dtypes)
    inputs = {"x": np.random.default_rng(1).standard_normal((batch, 3, 32, 32))}
    (y,) = graph.outputs
    wanted = run_kernels(kernels, partition_of, graph, inputs)[y]
    every = list(in_turns(group, 64 << 10, 8 << 10, device))
    assert len(every) == (2 if batch > 4 else 1)
    for found in every:
        actual = run_kernels(found.kernels, partition_of | found.partition_of, graph, inputs)[y]
        np.testing.assert_allclose(actual, wanted, rtol=1e-9, atol=1e-9)  # float64 both times


def test_heads_of_the_next_turn_run_amid_the_one_before() -> None:
    graph = graph_of(_network(4, 32))
    device = load_device("inf2")
    kernels, partition_of = make_kernels(graph, load_rules(), device)
    contractions = [n for n, kernel in enumerate(kernels) if isinstance(kernel.root, Contraction)]
    count = contractions[4] + 1
    group = Batch(kernels, count, set(graph.outputs), set(graph.inputs), partition_of, choose_dtypes(kernels))
    (found,) = in_turns(group, 64 << 10, 8 << 10, device)
    origins = [k.origins[0] for k in found.kernels if isinstance(k.root, Contraction)]
    first, fifth = (kernels[contractions[n]].origins[0] for n in (0, 4))
    heads = [n for n, origin in enumerate(origins) if origin == first]
    ends = [n for n, origin in enumerate(origins) if origin == fifth]
    assert len(heads) >= 4
    assert len(ends) == 4
    assert heads[-1] < ends[1]  # all heads are done before the first turn of two images is


def test_no_turns_where_an_image_needs_another_one() -> None:
    """Each image is added to the last, which turns would make after the first."""
    last = {"from": np.array([2], np.int64), "to": np.array([3], np.int64), "axes": np.array([0], np.int64)}
    weights = {n: np.ones((32, depth, 3, 3), np.float32) for n, depth in (("w1", 3), ("w2", 32))}
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["c1"], **SAME),
        helper.make_node("Slice", ["c1", *last], ["last"]),
        helper.make_node("Add", ["c1", "last"], ["sum"]),
        helper.make_node("Conv", ["sum", "w2"], ["y"], **SAME),
    ]
    graph = graph_of(make_model(nodes, {"x": (3, 3, 32, 32)}, ["y"], weights | last))
    device = load_device("inf2")
    kernels, partition_of = make_kernels(graph, load_rules(), device)
    outside, in_dram = set(graph.outputs), {*graph.inputs, *graph.outputs}
    group = Batch(kernels, len(kernels), outside, in_dram, partition_of, choose_dtypes(kernels))
    assert not list(in_turns(group, 64 << 10, 8 << 10, device))


def test_channels_that_dma_moves_come_after_what_made_them() -> None:
    """In the head of an image: they are not asked for ahead as its input is."""
    some = {"from": np.array([5], np.int64), "to": np.array([21], np.int64), "axes": np.array([1], np.int64)}
    rng = np.random.default_rng(5)
    shapes = {"w1": (32, 3, 3, 3), "w2": (32, 16, 3, 3), "w3": (16, 32, 3, 3)}
    weights = {n: rng.standard_normal(shape).astype(np.float32) for n, shape in shapes.items()}
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["c1"], **SAME),
        helper.make_node("Slice", ["c1", *some], ["some"]),
        helper.make_node("Conv", ["some", "w2"], ["c2"], **SAME),
        helper.make_node("Conv", ["c2", "w3"], ["y"], **SAME),
    ]
    graph = graph_of(make_model(nodes, {"x": (4, 3, 32, 32)}, ["y"], weights | some))
    device = load_device("inf2")
    kernels, partition_of = make_kernels(graph, load_rules(), device)
    outside, dtypes = set(graph.outputs), choose_dtypes(kernels)
    group = Batch(kernels, len(kernels) - 1, outside, set(graph.inputs), partition_of, dtypes)
    every = list(in_turns(group, 64 << 10, 8 << 10, device))
    assert every
    inputs = {"x": np.random.default_rng(1).standard_normal((4, 3, 32, 32))}
    (y,) = graph.outputs
    wanted = run_kernels(kernels, partition_of, graph, inputs)[y]
    for found in every:
        actual = run_kernels(found.kernels, partition_of | found.partition_of, graph, inputs)[y]
        np.testing.assert_allclose(actual, wanted, rtol=1e-9, atol=1e-9)  # float64 both times


@pytest.mark.slow
def test_in_little_memory_as_onnxruntime(tmp_path: Path) -> None:
    model = _network(8, 64)
    case = Case(model, random_inputs(model))
    tight = compile_model(model, shrunk(tmp_path, "inf1", 44))
    assert relative_error(run(tight, case.inputs, "strict")["y"], case.exact["y"]) < case.bounds["y"]


@pytest.mark.slow
def test_weights_come_once_a_turn(tmp_path: Path) -> None:
    tight = compile_model(_network(8, 64), shrunk(tmp_path, "inf1", 44))
    weights = sum(array.nbytes for array in tight.weights.values())
    traffic = time_program(tight.program, tight.device).dram_bytes_by_kind
    assert traffic["weight"] <= 4 * weights  # of two images each; one for each image would be 8
    assert "scratch" not in traffic
