"""Heads of detectors: boxes by anchor and position, put together and looked at level by level, in order in DRAM."""

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

import tvm_neuron
from tests.codegen.graphs import graph_of
from tests.codegen.interpreter import run_graph
from tests.codegen.on_core import PRECISIONS, check
from tests.models.agreement import random_inputs
from tests.onnx_models import make_model
from tvm_neuron.codegen.passes.canonical import canonical
from tvm_neuron.codegen.passes.pieces import cut_pieces
from tvm_neuron.codegen.passes.separate_pieces import separate_pieces

NODE = helper.make_node


def heads(levels: list[tuple[int, int]], anchors: int, classes: int, ends: str) -> onnx.ModelProto:
    """Of each level its scores [positions and anchors, classes], or flat, with what is above a limit, or softmaxes."""
    nodes, shapes, weights = [], {}, {"half": np.float32(0.5)}
    sizes = [rows * columns * anchors for rows, columns in levels]
    for n, (rows, columns) in enumerate(levels):
        shapes[f"x{n}"] = (1, anchors * classes, rows, columns)
        weights[f"apart{n}"] = np.array([1, anchors, classes, rows, columns])
        weights[f"rows{n}"] = np.array([1, sizes[n], classes])
        weights[f"flat{n}"] = np.array([-1])
        nodes += [
            NODE("Tanh", [f"x{n}"], [f"t{n}"]), NODE("Reshape", [f"t{n}", f"apart{n}"], [f"a{n}"]),
            NODE("Transpose", [f"a{n}"], [f"p{n}"], perm=[0, 3, 4, 1, 2]),
            NODE("Reshape", [f"p{n}", f"rows{n}"], [f"r{n}"]),
        ]  # fmt: skip
    every = range(len(levels))
    weights["sizes"] = np.array(sizes)
    if len(levels) > 1:
        nodes += [NODE("Concat", [f"r{n}" for n in every], ["all"], axis=1),
                  NODE("Split", ["all", "sizes"], [f"l{n}" for n in every], axis=1)]  # fmt: skip
    else:
        nodes.append(NODE("Identity", ["r0"], ["l0"]))
    outputs: list[Any] = []
    for n in every:
        if ends == "softmax":
            nodes.append(NODE("Softmax", [f"l{n}"], [f"y{n}"], axis=-1))
        elif ends == "rows":
            nodes.append(NODE("Sigmoid", [f"l{n}"], [f"y{n}"]))
        else:
            nodes += [NODE("Sigmoid", [f"l{n}"], [f"s{n}"]), NODE("Reshape", [f"s{n}", f"flat{n}"], [f"y{n}"]),
                      NODE("Greater", [f"y{n}", "half"], [f"g{n}"])]  # fmt: skip
            outputs.append(f"g{n}")
        outputs.append(f"y{n}")
    model = make_model(nodes, shapes, outputs, weights)
    for output in model.graph.output:
        if output.name.startswith("g"):
            output.type.tensor_type.elem_type = TensorProto.BOOL
    return model


@settings(max_examples=12, deadline=None)
@given(
    levels=st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=3),
    anchors=st.integers(1, 4), classes=st.integers(1, 50), ends=st.sampled_from(["rows", "softmax"]),
    precision=st.sampled_from(PRECISIONS),
)  # fmt: skip
def test_as_onnxruntime(
    levels: list[tuple[int, int]], anchors: int, classes: int, ends: str, precision: tuple[str, str]
) -> None:
    model = heads(levels, anchors, classes, ends)
    check(model, random_inputs(model), *precision)


@pytest.mark.parametrize("levels", [[(12, 12)], [(12, 9), (5, 6)]])
def test_what_is_above_a_limit(levels: list[tuple[int, int]]) -> None:
    """Whole steps of a quarter are exact in bfloat16; the sign of a tanh, and half as a sigmoid, of none is rounded."""
    model = heads(levels, 3, 10, "flat")
    inputs = {name: np.round(4 * array) / 4 + 0.125 for name, array in random_inputs(model).items()}
    check(model, inputs, "inf2", "none")


def together(levels: list[tuple[int, int]], anchors: int, classes: int) -> onnx.ModelProto:
    """The heads of several levels as one tensor, and a softmax over the classes of each position."""
    model = heads(levels, anchors, classes, "rows")
    kept = [node for node in model.graph.node if node.op_type not in ("Split", "Sigmoid")]
    nodes = [*kept, NODE("Softmax", ["all"], ["y"], axis=-1)]
    shapes = {value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim] for value in model.graph.input}
    weights = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    return make_model(nodes, shapes, ["y"], weights)


@settings(max_examples=6, deadline=None)
@given(
    levels=st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=2, max_size=3),
    anchors=st.integers(1, 4), classes=st.integers(2, 50), precision=st.sampled_from(PRECISIONS),
)  # fmt: skip
def test_all_levels_together(
    levels: list[tuple[int, int]], anchors: int, classes: int, precision: tuple[str, str]
) -> None:
    model = together(levels, anchors, classes)
    check(model, random_inputs(model), *precision)


def test_levels_are_put_together_by_rows() -> None:
    """Number by number, as they went to other partitions, they took 1.8 ms, 231 times as long as DRAM needs."""
    report = tvm_neuron.report(tvm_neuron.compile(together([(16, 16), (8, 8)], 9, 91), target="neuron/inf2"))
    assert report.latency_us < 16 * report.roofline_us


@pytest.mark.parametrize("ends", ["rows", "flat", "softmax"])
@pytest.mark.parametrize("levels", [[(16, 16)], [(16, 16), (8, 8)]])
def test_rows_are_stored_whole(levels: list[tuple[int, int]], ends: str) -> None:
    """Element by element, as each was moved before, they took 100 to 900 times as long as DRAM needs."""
    report = tvm_neuron.report(tvm_neuron.compile(heads(levels, 9, 91, ends), target="neuron/inf2"))
    assert not report.placed("cpu")
    assert report.latency_us < 12 * report.roofline_us


def put_together(begin: list[int], end: list[int]) -> onnx.ModelProto:
    """Six rows and ten as one tensor, and a part of it that is read."""
    nodes = [
        NODE("Neg", ["x"], ["a"]), NODE("Exp", ["z"], ["b"]), NODE("Concat", ["a", "b"], ["c"], axis=0),
        *(NODE("Slice", ["c", f"begin{n}", f"end{n}"], [f"part{n}"]) for n in range(len(begin))),
        *(NODE("Relu", [f"part{n}"], [f"y{n}"]) for n in range(len(begin))),
    ]  # fmt: skip
    bounds = {f"begin{n}": np.array([at]) for n, at in enumerate(begin)}
    bounds |= {f"end{n}": np.array([at]) for n, at in enumerate(end)}
    return make_model(nodes, {"x": (6, 4), "z": (10, 4)}, [f"y{n}" for n in range(len(begin))], bounds)


@settings(max_examples=20, deadline=None)
@given(parts=st.lists(st.tuples(st.integers(0, 15), st.integers(1, 16)), min_size=1, max_size=3))
@example(parts=[(0, 6), (6, 10)])
@example(parts=[(1, 3), (8, 2), (2, 4)])
@example(parts=[(0, 6), (5, 2)])
def test_pieces_are_apart_where_none_is_read_with_another(parts: list[tuple[int, int]]) -> None:
    parts = [(begin, min(count, 16 - begin)) for begin, count in parts]
    begins, ends = [begin for begin, _ in parts], [begin + count for begin, count in parts]
    graph = graph_of(put_together(begins, ends))
    cut_pieces(graph)
    graph.blocks = [canonical(block) for block in graph.blocks]
    rng = np.random.default_rng(0)
    inputs = {tensor.name: rng.standard_normal(tensor.shape) for tensor in graph.inputs}
    before = run_graph(graph, inputs)
    separate_pieces(graph)
    after = run_graph(graph, inputs)
    for output in graph.outputs:
        np.testing.assert_array_equal(after[output], before[output])
    is_apart = not any(begin < 6 < end for begin, end in zip(begins, ends, strict=True))
    assert all(len(graph.writers(tensor)) == 1 for tensor in graph.tensors() if tensor.kind == "temp") == is_apart
