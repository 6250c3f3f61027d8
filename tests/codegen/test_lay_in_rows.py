"""A row of output channels that is reduced whole: in several rows, one a partition, where that is sooner done."""

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from tests.codegen.graphs import graph_of
from tests.codegen.interpreter import run_graph
from tests.models.agreement import Case, random_inputs, relative_error
from tests.onnx_models import make_model
from tests.stages.networks import compile_model, run
from tvm_neuron.codegen import simplify
from tvm_neuron.codegen.passes.canonical import canonical
from tvm_neuron.codegen.passes.fold import fold_constants
from tvm_neuron.codegen.passes.lay_in_rows import lay_in_rows
from tvm_neuron.codegen.passes.moves import read_through
from tvm_neuron.codegen.passes.reductions import split_reductions
from tvm_neuron.codegen.passes.row_values import subtract_as_add
from tvm_neuron.hw import load_device
from tvm_neuron.isa import TensorReduce, Transpose
from tvm_neuron.schedule.graph import Graph
from tvm_neuron.sim import time_program

Nodes = list[onnx.NodeProto]


def node(op: str, inputs: str, output: str, **attributes: object) -> onnx.NodeProto:
    return helper.make_node(op, inputs.split(), [output], name=f"{op}_{output}", **attributes)


def softmax() -> Nodes:
    return [node("Softmax", "g", "y")]


def log_softmax() -> Nodes:
    return [node("LogSoftmax", "g", "y", axis=1)]


def unit_length() -> Nodes:
    return [node("ReduceL2", "g", "n", keepdims=1), node("Div", "g n", "y")]


def centred() -> Nodes:
    """A sum that is subtracted, then a minimum and a maximum of what that gives, as numbers of one element."""
    nodes = [node("ReduceMean", "g", "m", keepdims=1), node("Sub", "g m", "c"), node("ReduceMin", "c", "l", keepdims=1)]
    nodes += [node("ReduceMax", "c", "h", keepdims=1), node("Sub", "h l", "d"), node("Div", "c d", "y")]
    return nodes


def of_two_contractions() -> Nodes:
    return [node("Gemm", "x v", "f"), node("Softmax", "f", "s"), node("Mul", "s g", "m"), node("Softmax", "m", "y")]


def model(nodes: Nodes, classes: int = 1000, depth: int = 1280, batch: int = 1, **more: object) -> onnx.ModelProto:
    """Nodes behind g = x w + b, whose elements are spread over some tens, so that exponentials need the maximum."""
    rng = np.random.default_rng(classes)
    weights = {name: (10 * rng.standard_normal((depth, classes)) / depth**0.5).astype(np.float32) for name in "wv"}
    weights["b"] = rng.standard_normal(classes).astype(np.float32)
    return make_model([node("Gemm", "x w b", "g"), *nodes], {"x": (batch, depth)}, ["y"], weights)


def graph_before(network: onnx.ModelProto) -> Graph:
    """The graph as the pass meets it."""
    graph = graph_of(network)
    fold_constants(graph)
    graph.blocks = [canonical(block) for block in graph.blocks]
    split_reductions(graph)
    subtract_as_add(graph)
    read_through(graph)
    return graph


def is_taken(network: onnx.ModelProto, chip: str = "inf2") -> bool:
    return bool(lay_in_rows(graph_before(network), load_device(chip)))


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
@pytest.mark.parametrize("nodes", [softmax, log_softmax, unit_length, centred, of_two_contractions])
def test_as_onnxruntime(nodes: Callable[[], Nodes], chip: str) -> None:
    network = model(nodes())
    assert is_taken(network, chip)
    case = Case(network, random_inputs(network))
    found = run(compile_model(network, f"neuron/{chip}"), case.inputs, "strict")["y"]
    assert relative_error(found, case.exact["y"]) < case.bounds["y"]


@pytest.mark.parametrize("classes", [900, 1001, 1024, 1330])
def test_other_numbers_of_columns(classes: int) -> None:
    network = model(softmax(), classes)
    assert is_taken(network)
    case = Case(network, random_inputs(network))
    found = run(compile_model(network, "neuron/inf2"), case.inputs, "strict")["y"]
    assert relative_error(found, case.exact["y"]) < case.bounds["y"]
    assert found.sum() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("nodes", [softmax, log_softmax, unit_length, centred, of_two_contractions])
def test_meaning_is_kept(nodes: Callable[[], Nodes]) -> None:
    """To float64's precision."""
    network = model(nodes())
    graph, inputs = graph_before(network), random_inputs(network)
    (output,) = graph.outputs
    before = run_graph(graph, inputs)[output]
    assert lay_in_rows(graph, load_device("inf2"))
    np.testing.assert_allclose(run_graph(graph, inputs)[output], before, rtol=1e-9, atol=1e-12)


def test_instructions() -> None:
    """One transposition of the row in 8 parts of 125, and one of 8 results for each of the two reductions."""
    program = compile_model(model(softmax()), "neuron/inf2").program
    found = [part for _, part in program.instructions()]
    turned = [part.source.shape for part in found if isinstance(part, Transpose)]
    assert turned[-3:] == [(125, 8), (8, 8), (8, 8)]  # behind those of the input
    reduced = [part.source.shape for part in found if isinstance(part, TensorReduce)]
    assert reduced == [(8, 1, 125), (8, 1, 8), (8, 1, 125), (8, 1, 8)]


@pytest.mark.parametrize(("chip", "saved_us"), [("inf1", 4), ("inf2", 1.5)])
@pytest.mark.parametrize("depth", [512, 1280])
def test_it_is_sooner_done(chip: str, saved_us: float, depth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    network = model(softmax(), depth=depth)
    quick = compile_model(network, f"neuron/{chip}")
    monkeypatch.setattr(simplify, "lay_in_rows", lambda graph, device: {})
    slow = compile_model(network, f"neuron/{chip}")
    before, after = (time_program(one.program, one.device).latency_us for one in (slow, quick))
    assert before - after > saved_us


@pytest.mark.parametrize("classes", [10, 128, 1009])
def test_short_rows_stay_as_they_are(classes: int) -> None:
    """They gain nothing, and a prime number of columns has no rows."""
    assert not is_taken(model(softmax(), classes))


def test_short_rows_of_weights_stay_as_they_are() -> None:
    """Weights of few summed channels would come in rows of some bytes, which takes longer than all else."""
    assert is_taken(model(softmax(), 384))
    assert not is_taken(model(softmax(), 384, depth=256))


def test_rows_of_several_images_stay_as_they_are() -> None:
    assert not is_taken(model(softmax(), batch=2))


def test_rows_of_no_contraction_stay_as_they_are() -> None:
    rows = make_model([node("Abs", "x", "a"), node("Softmax", "a", "y")], {"x": (1, 1000)}, ["y"], {})
    assert not is_taken(rows)


def test_rows_that_are_read_otherwise_stay_as_they_are() -> None:
    """By a contraction, or for a part of them."""
    weights = [numpy_helper.from_array(np.ones((1000, 20), np.float32), "more")]
    starts = [numpy_helper.from_array(np.array([n]), name) for n, name in ((1, "one"), (999, "end"), (0, "zero"))]
    part = node("Slice", "s zero end one", "p")
    for nodes in (
        [node("MatMul", "s more", "y")],
        [part, node("Abs", "p", "y")],
        [part, node("ReduceSum", "p", "t"), node("Mul", "s t", "y")],
    ):
        network = model([node("Softmax", "g", "s"), *nodes])
        network.graph.initializer.extend([*weights, *starts])
        assert not is_taken(network)


def test_numbers_that_the_model_gives_stay_as_they_are() -> None:
    assert not is_taken(model([node("ReduceMax", "g", "y", keepdims=1)]))


def test_whole_numbers_stay_as_they_are() -> None:
    """The PE array doesn't transpose them."""
    nodes = [node("Cast", "g", "i", to=onnx.TensorProto.INT32), node("ReduceMax", "i", "m", keepdims=1)]
    nodes += [node("Sub", "i m", "d"), node("Cast", "d", "y", to=onnx.TensorProto.FLOAT)]
    assert not is_taken(model(nodes))


def test_numbers_from_elsewhere_leave_rows_as_they_are() -> None:
    """A number that is no reduction of such a row lies on one partition."""
    nodes = [node("ReduceMax", "x", "m", keepdims=1), node("Mul", "g m", "p"), node("Softmax", "p", "y")]
    assert not is_taken(model(nodes, depth=640))
