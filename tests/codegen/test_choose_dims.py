"""choose_dims: tensors lie so that the blocks around them take little time, and mean what they meant."""

from collections.abc import Mapping

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.codegen.graphs import graph_of
from tests.codegen.on_core import check
from tests.onnx_models import make_model
from tvm_neuron.codegen.kernels.fuse import MOST_VALUES, computed
from tvm_neuron.codegen.passes.choose_dims import choose_dims
from tvm_neuron.codegen.passes.layout import own_dims
from tvm_neuron.codegen.passes.merge import merged
from tvm_neuron.codegen.passes.moves import read_through
from tvm_neuron.codegen.simplify import make_kernels
from tvm_neuron.hw import load_device
from tvm_neuron.schedule.rule import load_rules

INF2 = load_device("inf2")
HEADS, TOKENS, SIZE = 4, 64, 32


def _turned(heads: int = HEADS, tokens: int = TOKENS, size: int = SIZE, axis: int = 1) -> onnx.ModelProto:
    """Heads split off, turned by positions as rotary embeddings do, and multiplied with themselves."""
    rng = np.random.default_rng(heads + tokens)
    weights = {
        "w": (rng.standard_normal((48, heads * size)) / 7).astype(np.float32),
        "cos": rng.standard_normal((tokens, size)).astype(np.float32),
        "sin": rng.standard_normal((tokens, size)).astype(np.float32),
        "split": np.array([1, tokens, heads, size]),
        "half": np.array([size // 2, size - size // 2]),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["q"]),
        helper.make_node("Reshape", ["q", "split"], ["r"]),
        helper.make_node("Transpose", ["r"], ["t"], perm=[0, 2, 1, 3]),
        helper.make_node("Split", ["t", "half"], ["left", "right"], axis=3),
        helper.make_node("Neg", ["right"], ["negative"]),
        helper.make_node("Concat", ["negative", "left"], ["swapped"], axis=3),
        helper.make_node("Mul", ["t", "cos"], ["a"]),
        helper.make_node("Mul", ["swapped", "sin"], ["b"]),
        helper.make_node("Add", ["a", "b"], ["c"]),
        helper.make_node("Softmax", ["c"], ["y"], axis=axis),
    ]
    return make_model(nodes, {"x": (1, tokens, 48)}, ["y"], weights)


def _dims(model: onnx.ModelProto) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """How tensors lie at first and then, by their shapes."""
    graph = graph_of(model)
    read_through(graph)
    start = own_dims(graph, {})
    found = choose_dims(graph, start, set(), load_rules(), INF2)
    assert found.keys() == start.keys()
    return {str(t.shape): start[t] for t in start}, {str(t.shape): found[t] for t in found}


def test_tokens_rather_than_few_heads_lie_on_the_partitions() -> None:
    shape = str((1, HEADS, TOKENS, SIZE))
    first, then = _dims(_turned(axis=3))
    assert first[shape] == 1
    assert then[shape] == 2


def test_what_is_given_stays() -> None:
    graph = graph_of(_turned(axis=3))
    start = own_dims(graph, {})
    assert choose_dims(graph, start, set(start), load_rules(), INF2) == start


def test_quick_kernels_are_laid_out_block_by_block() -> None:
    _, quick = make_kernels(graph_of(_turned(axis=3)), load_rules(), INF2, is_quick=True)
    _, usual = make_kernels(graph_of(_turned(axis=3)), load_rules(), INF2)
    shape = (1, HEADS, TOKENS, SIZE)
    assert {dim for tensor, dim in quick.items() if tensor.shape == shape} != {
        dim for tensor, dim in usual.items() if tensor.shape == shape
    }


@pytest.mark.parametrize(
    ("chip", "heads", "tokens", "size", "axis"),
    [("inf2", 2, 130, 7, 1), ("inf2", 6, 5, 64, 3), ("inf1", 1, 130, 64, 2), ("inf1", 6, 1, 2, 1)],
)
def test_values_are_right_however_they_lie(chip: str, heads: int, tokens: int, size: int, axis: int) -> None:
    model = _turned(heads, tokens, size, axis)
    x = np.random.default_rng(1).standard_normal((1, tokens, 48)).astype(np.float32)
    check(model, {"x": x}, chip, "all", roundings=16)


def test_what_is_merged_stays_as_small_as_what_is_fused() -> None:
    nodes = [helper.make_node("Mul", [f"y{n}", f"y{n}"], [f"y{n + 1}"]) for n in range(40)]  # 2**40 products as one
    graph, _ = merged(graph_of(make_model(nodes, {"y0": [4, 8]}, ["y40"])))
    assert 1 < len(graph.blocks) < 40
    assert max(len(computed(block.expr)) for block in graph.blocks) <= MOST_VALUES


def _waves(samples: int = 6000) -> onnx.ModelProto:
    """A row of samples as the one channel of a convolution."""
    weights = {
        "w": np.random.default_rng(5).standard_normal((32, 1, 10)).astype(np.float32),
        "channel": np.array([1, 1, samples]),
    }
    nodes = [
        helper.make_node("Reshape", ["x", "channel"], ["c"]),
        helper.make_node("Conv", ["c", "w"], ["y"], kernel_shape=[10], strides=[5]),
    ]
    return make_model(nodes, {"x": (1, samples)}, ["y"], weights)


def test_a_row_that_is_one_channel_is_not_spread_over_the_partitions_element_by_element() -> None:
    first, then = _dims(_waves())
    assert (first[str((1, 6000))], then[str((1, 6000))]) == (1, 0)


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
def test_such_a_row_is_convolved_as_by_onnxruntime(chip: str) -> None:
    check(_waves(), {"x": np.random.default_rng(6).standard_normal((1, 6000)).astype(np.float32)}, chip, "all")
