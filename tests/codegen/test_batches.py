"""split_batches keeps the meaning, and what lies between two products becomes small."""

from dataclasses import replace

import numpy as np
import pytest
from onnx import helper

from tests.codegen.graphs import graph_of
from tests.codegen.interpreter import run_graph
from tests.codegen.on_core import check
from tests.onnx_models import make_model
from tvm_neuron.codegen.passes.batches import ITEM, SHARE, split_batches
from tvm_neuron.codegen.passes.canonical import canonical
from tvm_neuron.codegen.passes.moves import read_through
from tvm_neuron.codegen.passes.reductions import split_reductions
from tvm_neuron.hw import load_device
from tvm_neuron.schedule.graph import Graph
from tvm_neuron.schedule.roles import product_factors


def attention(batch: int, heads: int, rows: int) -> Graph:
    nodes = [
        helper.make_node("MatMul", ["q", "k"], ["s"]),
        helper.make_node("Add", ["s", "mask"], ["m"]),
        helper.make_node("Softmax", ["m"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "v"], ["o"]),
        helper.make_node("Transpose", ["o"], ["t"], perm=[0, 2, 1, 3]),
        helper.make_node("Relu", ["t"], ["y"]),
    ]
    wide, high = (batch, heads, rows, 8), (batch, heads, 8, rows)
    shapes = {"q": wide, "k": high, "v": wide, "mask": (batch, 1, 1, rows)}
    graph = graph_of(make_model(nodes, shapes, ["y"]))
    graph.blocks = [canonical(block) for block in graph.blocks]
    split_reductions(graph)
    read_through(graph)
    return graph


@pytest.mark.parametrize(("batch", "heads", "rows"), [(1, 5, 12), (2, 4, 9), (7, 1, 10)])
def test_groups_of_heads(batch: int, heads: int, rows: int) -> None:
    graph = attention(batch, heads, rows)
    random = np.random.default_rng(0)
    inputs = {tensor.name: random.standard_normal(tensor.shape) for tensor in graph.inputs}
    (output,) = graph.outputs
    before = run_graph(graph, inputs)[output]
    most = 2 * rows * rows  # of elements: two heads
    little = replace(load_device("inf1"), sbuf_bytes_per_partition=-(-most * ITEM * SHARE // 128))
    split_batches(graph, little)
    np.testing.assert_allclose(run_graph(graph, inputs)[output], before, rtol=1e-12)
    scores = [block.output for block in graph.blocks if product_factors(block) and block.output.shape[-1] == rows]
    assert len(scores) >= batch * heads / 2
    assert all(tensor.elems <= most for tensor in scores)


def test_what_fits_stays() -> None:
    graph = attention(1, 4, 16)
    count = len(graph.blocks)
    split_batches(graph, load_device("inf1"))
    assert len(graph.blocks) == count


@pytest.mark.parametrize(("heads", "rows"), [(1, 300), (2, 257)])
def test_rows_of_one_head(heads: int, rows: int) -> None:
    """Where not even the scores of one head and what becomes of them fit: some rows of these after others."""
    graph = attention(1, heads, rows)
    random = np.random.default_rng(1)
    inputs = {tensor.name: random.standard_normal(tensor.shape) for tensor in graph.inputs}
    (output,) = graph.outputs
    before = run_graph(graph, inputs)[output]
    little = replace(load_device("inf1"), sbuf_bytes_per_partition=rows * rows * ITEM // 128)
    split_batches(graph, little)
    np.testing.assert_allclose(run_graph(graph, inputs)[output], before, rtol=1e-12)
    scores = [block.output for block in graph.blocks if product_factors(block) and block.output.shape[-1] == rows]
    assert all(tensor.elems <= 128 * rows for tensor in scores)


def test_attention_of_rows_too_many_for_the_memory() -> None:
    """Scores of 1500 x 1500 are 36 KiB of each of inf1's partitions, which have 96."""
    rng = np.random.default_rng(2)
    shapes = {"q": (1, 1, 1500, 8), "k": (1, 1, 8, 1500), "v": (1, 1, 1500, 8)}
    nodes = [
        helper.make_node("MatMul", ["q", "k"], ["s"]),
        helper.make_node("Softmax", ["s"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "v"], ["y"]),
    ]
    inputs = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    check(make_model(nodes, shapes, ["y"]), inputs, "inf1", "all")
