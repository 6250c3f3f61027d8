"""separate_parts: fused projections keep their meaning, and no part of them goes through device memory."""

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from onnx import helper

from tests.codegen.graphs import graph_of
from tests.codegen.interpreter import run_graph
from tests.onnx_models import make_model
from tests.stages.networks import compile_model, run
from tvm_neuron.codegen.passes.canonical import canonical
from tvm_neuron.codegen.passes.moves import read_through
from tvm_neuron.codegen.passes.separate_parts import separate_parts
from tvm_neuron.codegen.simplify import make_kernels
from tvm_neuron.hw import load_device
from tvm_neuron.isa import DmaCopy, DramTile
from tvm_neuron.schedule.roles import is_constant_contraction
from tvm_neuron.schedule.rule import load_rules

ORDERS = {"outside": 2, "between": 3, "inside": 4}
"""Where the 3 of queries, keys and values stands among [windows, tokens, heads, channels]."""


def attention(windows: int, tokens: int, heads: int, channels: int, order: str) -> onnx.ModelProto:
    """Attention with one projection to [.., 3 * heads * channels], its parts one behind the other or interleaved."""
    width, rng = heads * channels, np.random.default_rng(windows + tokens)
    place = ORDERS[order]
    shape = [windows, tokens, heads, channels]
    shape.insert(place, 3)
    rest = [d for d in range(5) if d != place]
    weights = {
        "w": (rng.standard_normal((width, 3 * width)) / np.sqrt(width)).astype(np.float32),
        "b": rng.standard_normal(3 * width).astype(np.float32),
        "parts": np.array(shape),
        "ones": np.array([1, 1, 1]),
        "axis": np.array([0]),
        "scale": np.float32(channels**-0.5),
    }
    batch, token, head, channel = rest
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"]),
        helper.make_node("Add", ["m", "b"], ["a"]),
        helper.make_node("Reshape", ["a", "parts"], ["r"]),
        helper.make_node("Transpose", ["r"], ["t"], perm=[place, batch, head, token, channel]),
        helper.make_node("Split", ["t", "ones"], ["q1", "k1", "v1"], axis=0),
        *(helper.make_node("Squeeze", [f"{part}1", "axis"], [part]) for part in "qkv"),
        helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]),
        helper.make_node("Mul", ["q", "scale"], ["s"]),
        helper.make_node("MatMul", ["s", "kt"], ["z"]),
        helper.make_node("Softmax", ["z"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "v"], ["y"]),
    ]
    return make_model(nodes, {"x": (windows, tokens, width)}, ["y"], weights)


@settings(max_examples=10, deadline=None)
@given(
    windows=st.integers(1, 3), tokens=st.integers(2, 9), heads=st.integers(1, 4), channels=st.integers(1, 8),
    order=st.sampled_from(list(ORDERS)),
)  # fmt: skip
@example(windows=2, tokens=3, heads=3, channels=4, order="outside")
@example(windows=2, tokens=3, heads=3, channels=4, order="between")
def test_parts_keep_their_meaning(windows: int, tokens: int, heads: int, channels: int, order: str) -> None:
    graph = graph_of(attention(windows, tokens, heads, channels, order))
    graph.blocks = [canonical(block) for block in graph.blocks]
    read_through(graph)
    rng = np.random.default_rng(tokens)
    inputs = {tensor.name: rng.standard_normal(tensor.shape) for tensor in graph.inputs}
    (output,) = graph.outputs
    before = run_graph(graph, inputs)[output]
    separate_parts(graph)
    assert sum(map(is_constant_contraction, graph.blocks)) == 3
    np.testing.assert_allclose(run_graph(graph, inputs)[output], before, rtol=1e-12)


def test_a_scale_that_is_a_tensor_is_one_all_the_same() -> None:
    """Exporters compute it from shapes: it is folded to a tensor of one element, no number in the arithmetic."""
    counts = []
    for shape in ((), (1, 1)):
        model = attention(2, 33, 3, 32, "outside")
        (old,) = (weight for weight in model.graph.initializer if weight.name == "scale")
        scale = onnx.numpy_helper.to_array(old).reshape(shape)
        old.CopyFrom(onnx.numpy_helper.from_array(scale, "scale"))
        counts.append(len(make_kernels(graph_of(model), load_rules(), load_device("inf2"))[0]))
    assert counts[0] == counts[1]


@pytest.mark.parametrize("order", list(ORDERS))
@pytest.mark.parametrize("chip", ["inf1", "inf2"])
def test_no_part_goes_through_device_memory(order: str, chip: str) -> None:
    model = attention(2, 33, 3, 32, order)
    kernels, _ = make_kernels(graph_of(model), load_rules(), load_device(chip))
    assert not any(kernel.out.kind == "scratch" for kernel in kernels)
    x = np.random.default_rng(0).standard_normal((2, 33, 96)).astype(np.float32)
    (wanted,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    found = run(compile_model(model, f"neuron/{chip}"), {"x": x}, "strict")["y"]
    # Scores of a size of 1 whose bf16 operands are rounded (2^-8 each) move softmax and its values, up to 4, by that.
    np.testing.assert_allclose(found, wanted, atol=0.05)


@pytest.mark.slow
@settings(max_examples=4, deadline=None)
@given(
    windows=st.integers(1, 3), tokens=st.integers(20, 70), heads=st.integers(1, 5), channels=st.integers(8, 100),
    chip=st.sampled_from(["inf1", "inf2"]),
)  # fmt: skip
@example(windows=1, tokens=40, heads=3, channels=48, chip="inf2")
@example(windows=2, tokens=33, heads=4, channels=20, chip="inf1")
def test_heads_of_any_size_move_in_rows(windows: int, tokens: int, heads: int, channels: int, chip: str) -> None:
    model = attention(windows, tokens, heads, channels, "outside")
    made = compile_model(model, f"neuron/{chip}")
    scratch = {n for n, tensor in enumerate(made.program.tensors) if tensor.kind == "scratch"}
    for _, node in made.program.instructions():
        if isinstance(node, DmaCopy):
            sides = [
                side for side in (node.target, node.source) if isinstance(side, DramTile) and side.tensor in scratch
            ]
            assert all(side.dims[-1][0] == 1 and side.dims[-1][1] >= tokens for side in sides), node
    x = np.random.default_rng(tokens).standard_normal((windows, tokens, heads * channels)).astype(np.float32)
    (wanted,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    np.testing.assert_allclose(run(made, {"x": x}, "strict")["y"], wanted, atol=0.05)
