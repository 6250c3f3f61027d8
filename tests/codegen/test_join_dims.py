"""Images with their channels last have positions, not rows or columns, on the partitions: the same results, sooner."""

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from onnx import helper

from tests.codegen.graphs import graph_of
from tests.codegen.interpreter import run_graph
from tests.models.agreement import Case, random_inputs, relative_error
from tests.onnx_models import make_model
from tests.stages.networks import compile_model, run
from tvm_neuron.codegen import simplify
from tvm_neuron.codegen.passes.canonical import canonical
from tvm_neuron.codegen.passes.join_dims import join_dims
from tvm_neuron.codegen.passes.moves import read_through
from tvm_neuron.errors import UnschedulableError

NODE = helper.make_node
STEPS = ("norm", "product", "softmax", "depthwise", "residual", "mean", "relu", "attention", "pooled")


def network(steps: list[str], channels: int, rows: int, columns: int) -> onnx.ModelProto:
    """Each step takes and gives [1, channels, rows, columns], and transposes it but for convolutions and pools."""
    rng = np.random.default_rng(len(steps))
    weights: dict[str, np.ndarray] = {"axis": np.array([-1]), "smaller": np.float32(channels**-0.5)}
    nodes = []

    def weight(name: str, *shape: int) -> str:
        weights[name] = (rng.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)
        return name

    x = "x"
    for n, step in enumerate(steps):
        before, x = x, f"s{n}"
        if step == "depthwise":
            w = weight(f"w{n}", channels, 1, 3, 3)
            nodes.append(NODE("Conv", [before, w], [x], group=channels, pads=[1] * 4))
            continue
        if step in ("residual", "relu"):
            nodes.append(NODE("Add", [before, "x"], [x]) if step == "residual" else NODE("Relu", [before], [x]))
            continue
        if step == "pooled":
            nodes += pooled_attention(n, before, x, channels, rows, columns, weights)
            continue
        last, made = f"l{n}", f"m{n}"
        nodes.append(NODE("Transpose", [before], [last], perm=[0, 2, 3, 1]))
        if step == "norm":
            nodes.append(NODE("LayerNormalization", [last, weight(f"g{n}", channels)], [made]))
        elif step == "product":
            nodes.append(NODE("MatMul", [last, weight(f"w{n}", channels, channels)], [made]))
        elif step == "attention":  # all positions among each other, by heads
            w, heads = weight(f"w{n}", channels, channels), 2 - channels % 2
            weights |= {f"heads{n}": np.array([1, rows * columns, heads, channels // heads])}
            weights |= {f"image{n}": np.array([1, rows, columns, channels])}
            nodes += [
                NODE("MatMul", [last, w], [f"p{n}"]), NODE("Reshape", [f"p{n}", f"heads{n}"], [f"h{n}"]),
                NODE("Transpose", [f"h{n}"], [f"f{n}"], perm=[0, 2, 1, 3]),
                NODE("Transpose", [f"h{n}"], [f"t{n}"], perm=[0, 2, 3, 1]),
                NODE("MatMul", [f"f{n}", f"t{n}"], [f"c{n}"]),
                NODE("Mul", [f"c{n}", "smaller"], [f"d{n}"]), NODE("Softmax", [f"d{n}"], [f"e{n}"], axis=-1),
                NODE("MatMul", [f"e{n}", f"f{n}"], [f"o{n}"]),
                NODE("Transpose", [f"o{n}"], [f"u{n}"], perm=[0, 2, 1, 3]),
                NODE("Reshape", [f"u{n}", f"image{n}"], [made]),
            ]  # fmt: skip
        elif step == "softmax":
            nodes.append(NODE("Softmax", [last], [made], axis=-1))
        else:
            nodes += [NODE("ReduceMean", [last, "axis"], [f"r{n}"]), NODE("Sub", [last, f"r{n}"], [made])]
        nodes.append(NODE("Transpose", [made], [x], perm=[0, 3, 1, 2]))
    return make_model([*nodes, NODE("Neg", [x], ["y"])], {"x": (1, channels, rows, columns)}, ["y"], weights)


def pooled_attention(
    n: int, x: str, y: str, channels: int, rows: int, columns: int, weights: dict[str, np.ndarray]
) -> list[onnx.NodeProto]:
    """All positions of an image among those of the same, pooled; with channels first throughout."""
    heads = 2 - channels % 2
    weights |= {f"w{n}": np.eye(channels, dtype=np.float32)[:, ::-1, None, None].copy()}
    weights |= {f"flat{n}": np.array([1, heads, channels // heads, -1])}
    weights |= {f"image{n}": np.array([1, channels, rows, columns])}
    return [
        NODE("Conv", [x, f"w{n}"], [f"p{n}"]), NODE("Reshape", [f"p{n}", f"flat{n}"], [f"h{n}"]),
        NODE("Transpose", [f"h{n}"], [f"q{n}"], perm=[0, 1, 3, 2]),
        NODE("MaxPool", [x], [f"b{n}"], kernel_shape=[2, 2], strides=[2, 2]),
        NODE("Reshape", [f"b{n}", f"flat{n}"], [f"k{n}"]),
        NODE("Transpose", [f"k{n}"], [f"v{n}"], perm=[0, 1, 3, 2]),
        NODE("MatMul", [f"q{n}", f"k{n}"], [f"c{n}"]),
        NODE("Mul", [f"c{n}", "smaller"], [f"d{n}"]), NODE("Softmax", [f"d{n}"], [f"e{n}"], axis=-1),
        NODE("MatMul", [f"e{n}", f"v{n}"], [f"o{n}"]), NODE("Transpose", [f"o{n}"], [f"t{n}"], perm=[0, 1, 3, 2]),
        NODE("Reshape", [f"t{n}", f"image{n}"], [y]),
    ]  # fmt: skip


@pytest.mark.slow
@settings(max_examples=5, deadline=None)
@given(
    steps=st.lists(st.sampled_from(STEPS), min_size=1, max_size=5),
    channels=st.sampled_from([3, 8, 24, 130]),
    rows=st.integers(2, 20),
    columns=st.integers(2, 20),
    chip=st.sampled_from(["inf1", "inf2"]),
)
def test_as_onnxruntime(steps: list[str], channels: int, rows: int, columns: int, chip: str) -> None:
    model = network(steps, channels, rows, columns)
    case = Case(model, random_inputs(model))
    found = run(compile_model(model, f"neuron/{chip}"), case.inputs, "strict")["y"]
    assert relative_error(found, case.exact["y"]) < case.bounds["y"]


@settings(max_examples=20, deadline=None)
@given(
    steps=st.lists(st.sampled_from(STEPS), min_size=1, max_size=3),
    channels=st.sampled_from([3, 4]),
    rows=st.integers(2, 7),
    columns=st.integers(2, 7),
    as_results=st.booleans(),
)
@example(steps=["depthwise", "pooled"], channels=4, rows=5, columns=6, as_results=True)
@example(steps=["norm", "product"], channels=4, rows=5, columns=6, as_results=False)
def test_the_same_numbers(steps: list[str], channels: int, rows: int, columns: int, as_results: bool) -> None:
    graph = graph_of(network(steps, channels, rows, columns))
    graph.blocks = [canonical(block) for block in graph.blocks]
    read_through(graph)
    inputs = {t.name: np.random.default_rng(0).standard_normal(t.shape) for t in graph.inputs}
    (output,) = graph.outputs
    before = run_graph(graph, inputs)[output]
    join_dims(graph, as_results)
    np.testing.assert_allclose(run_graph(graph, inputs)[output], before, rtol=1e-12, atol=1e-12)


def test_norms_and_products_take_positions() -> None:
    graph = graph_of(network(["depthwise", "norm", "product", "residual"], 48, 16, 16))
    join_dims(graph)
    joined = {block.output.shape for block in graph.blocks if block.combine and ".joined" in block.output.name}
    assert joined == {(1, 256), (1, 256, 48)}


def test_attention_among_positions_reads_them_as_one() -> None:
    """Queries and keys of one projection: a block that reads the same tensor twice, by axes of its own."""
    graph = graph_of(network(["depthwise", "norm", "attention"], 48, 8, 8))
    graph.blocks = [canonical(block) for block in graph.blocks]
    read_through(graph)
    join_dims(graph)
    products = [
        [len(load.indices) for load in block.loads()]
        for block in graph.blocks
        if block.combine and all(load.tensor.value is None for load in block.loads()) and len(block.loads()) == 2
    ]
    assert products == [[3, 3], [4, 3]]  # of [1, positions, channels], and scores [1, heads, positions, positions]


@pytest.mark.parametrize("steps", [["depthwise", "relu"], ["residual", "relu"]])
def test_channels_first_stay_as_they_are(steps: list[str]) -> None:
    graph = graph_of(network(steps, 48, 16, 16))
    before = graph.blocks
    join_dims(graph)
    assert graph.blocks == before


@pytest.mark.parametrize("as_results", [False, True])
def test_products_of_images_that_keep_channels_first(as_results: bool) -> None:
    """Queries and pooled keys are read at one position after the other, where their scores count them so."""
    graph = graph_of(network(["depthwise", "pooled"], 48, 12, 12))
    graph.blocks = [canonical(block) for block in graph.blocks]
    read_through(graph)
    join_dims(graph, as_results)
    products = [
        [len(load.indices) for load in block.loads()]
        for block in graph.blocks
        if block.combine and all(load.tensor.value is None for load in block.loads()) and len(block.loads()) == 2
    ]
    assert products[0] == ([3, 3] if as_results else [4, 4])  # [1, channels, positions], or rows and columns apart


def test_what_no_rule_takes_joined_is_not_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is the usual way, so that nothing is refused for another one."""
    model = network(["depthwise", "pooled"], 48, 12, 12)
    asked = []

    def ways(work: Any) -> list[Any]:
        if work.joins_results:
            asked.append(work)
            raise UnschedulableError("no rule takes it")
        return usual(work)

    usual = simplify._ways
    monkeypatch.setattr(simplify, "_ways", ways)
    compiled = compile_model(model, "neuron/inf2")  # which is one program, not parts beside operators on the CPU
    assert asked
    assert {tensor.name for tensor in compiled.program.tensors if tensor.kind != "weight"} >= {"x", "y"}
