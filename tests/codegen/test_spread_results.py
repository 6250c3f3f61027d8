"""A long row of results is stored from all partitions, in an order in which each of them holds what follows."""

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.codegen.graphs import graph_of
from tests.codegen.on_core import PRECISIONS, check
from tests.onnx_models import make_model
from tests.stages.networks import compile_model
from tvm_neuron.codegen.passes.spread_results import spread_results
from tvm_neuron.codegen.steps import without
from tvm_neuron.isa import DmaCopy, Tile, Transpose
from tvm_neuron.neff import Neff
from tvm_neuron.program import walk
from tvm_neuron.sim import time_program

DEPTH = 48
SIZES = [512, 1000, 1283, 5001]
"""A multiple of the partitions, one of 125 of them, a prime one, and one that leaves a part of the last partition."""


def _scores(size: int, ends: tuple[str, ...] = ("Add", "Sigmoid"), rows: int = 1) -> onnx.ModelProto:
    """A product with weights, then arithmetic."""
    rng = np.random.default_rng(size)
    weights = {"w": (rng.standard_normal((DEPTH, size)) / DEPTH**0.5).astype(np.float32)}
    weights["b"] = rng.standard_normal(size).astype(np.float32)
    nodes = [helper.make_node("Tanh", ["x"], ["h"]), helper.make_node("MatMul", ["h", "w"], ["v0"], name="product")]
    for number, op in enumerate(ends):
        read = [f"v{number}", "b"] if op in ("Add", "Mul") else [f"v{number}"]
        nodes.append(helper.make_node(op, read, [f"v{number + 1}"], **({"axis": -1} if op == "Softmax" else {})))
    return make_model(nodes, {"x": (rows, DEPTH)}, [f"v{len(ends)}"], weights)


def _images(size: int) -> onnx.ModelProto:
    """A classifier that ends with a convolution."""
    rng = np.random.default_rng(size)
    weights = {"w": (rng.standard_normal((size, DEPTH, 1, 1)) / DEPTH**0.5).astype(np.float32)}
    weights["b"] = rng.standard_normal(size).astype(np.float32)
    nodes = [
        helper.make_node("GlobalAveragePool", ["x"], ["p"]),
        helper.make_node("Conv", ["p", "w", "b"], ["c"], kernel_shape=[1, 1]),
        helper.make_node("Flatten", ["c"], ["y"]),
    ]
    return make_model(nodes, {"x": (1, DEPTH, 6, 6)}, ["y"], weights)


def _stored_from(compiled: Neff) -> int:
    """The most partitions of SBUF that a transfer stores."""
    every = [node for _, node in walk(compiled.program.body) if isinstance(node, DmaCopy)]
    return max(node.source.partitions for node in every if isinstance(node.source, Tile))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("chip", "fp32_cast"), PRECISIONS)
def test_scores_as_onnxruntime(size: int, chip: str, fp32_cast: str) -> None:
    x = np.random.default_rng(3).standard_normal((1, DEPTH)).astype(np.float32)
    check(_scores(size), {"x": x}, chip, fp32_cast)
    check(_scores(size, ("Mul", "Add", "Exp")), {"x": x}, chip, fp32_cast, roundings=24)  # errors grow by exp


@pytest.mark.parametrize(("chip", "fp32_cast"), PRECISIONS)
def test_a_classifier_as_onnxruntime(chip: str, fp32_cast: str) -> None:
    x = np.random.default_rng(3).standard_normal((1, DEPTH, 6, 6)).astype(np.float32)
    check(_images(1000), {"x": x}, chip, fp32_cast)


@pytest.mark.parametrize("model", [_scores(32000), _scores(5001), _images(1000)], ids=["vocabulary", "odd", "image"])
def test_nothing_is_turned_for_it_and_it_takes_less_time(model: onnx.ModelProto) -> None:
    compiled = compile_model(model, "neuron/inf2")
    with without("spread_results"):
        usual = compile_model(model, "neuron/inf2")
    turned = [node for _, node in walk(compiled.program.body) if isinstance(node, Transpose)]
    assert all(node.psum.partitions > 1 for node in turned)
    assert _stored_from(compiled) > 100
    assert _stored_from(usual) == 1
    now, then = (time_program(each.program, each.device).total_ps for each in (compiled, usual))
    assert now < then


@pytest.mark.parametrize(
    "model",
    [
        _scores(256),  # short
        _scores(1000, rows=2),
        _scores(1000, ("Softmax",)),  # which is done in rows
        make_model([helper.make_node("Tanh", ["x"], ["y"])], {"x": (1, 1000)}, ["y"], {}),  # no product
    ],
    ids=["short", "two rows", "softmax", "no product"],
)
def test_what_stays(model: onnx.ModelProto) -> None:
    graph = graph_of(model)
    before = graph.blocks
    spread_results(graph)
    assert graph.blocks == before
