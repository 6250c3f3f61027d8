"""Products write where their results are moved to, unless the PE array would leave them on fewer partitions there."""

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.codegen.graphs import graph_of
from tests.codegen.on_core import PRECISIONS, check
from tests.onnx_models import make_model
from tvm_neuron.codegen.simplify import make_kernels
from tvm_neuron.hw import load_device
from tvm_neuron.schedule.kernel import Product
from tvm_neuron.schedule.rule import load_rules

WINDOWS, HEADS, WIDTH, QUERIES, KEYS = 5, 2, 96, 8, 16
ROUNDINGS = 8
"""Operands of two products and of the last one, and what comes between them."""


def _model() -> onnx.ModelProto:
    """Attention in windows, of which each has every fifth row of a sequence, as hierarchical networks order them."""
    channels = HEADS * WIDTH
    nodes, order = [], [0, 3, 2, 1, 4]
    for name in ("q", "k", "v"):
        nodes.append(helper.make_node("Reshape", [name, f"{name}_shape"], [f"{name}_apart"], f"{name}_apart"))
        turned = [0, 3, 2, 4, 1] if name == "k" else order
        nodes.append(helper.make_node("Transpose", [f"{name}_apart"], [f"{name}_heads"], f"{name}_heads", perm=turned))
    nodes += [
        helper.make_node("MatMul", ["q_heads", "k_heads"], ["scores"], "scores"),
        helper.make_node("Softmax", ["scores"], ["shares"], "softmax", axis=-1),
        helper.make_node("MatMul", ["shares", "v_heads"], ["mixed"], "mixed"),
        helper.make_node("Transpose", ["mixed"], ["rows"], "rows", perm=order),
        helper.make_node("Reshape", ["rows", "joined_shape"], ["joined"], "joined"),
        helper.make_node("MatMul", ["joined", "w"], ["y"], "project"),
    ]
    rng = np.random.default_rng(11)
    constants = {"w": rng.standard_normal((channels, channels)).astype(np.float32) / np.float32(np.sqrt(channels))}
    for name, rows in (("q", QUERIES), ("k", KEYS), ("v", KEYS)):
        constants[f"{name}_shape"] = np.array([1, rows, WINDOWS, HEADS, WIDTH])
    constants["joined_shape"] = np.array([1, QUERIES * WINDOWS, channels])
    return make_model(nodes, {"q": _shape(QUERIES), "k": _shape(KEYS), "v": _shape(KEYS)}, ["y"], constants)


def _shape(rows: int) -> tuple[int, int, int]:
    return 1, rows * WINDOWS, HEADS * WIDTH


def _inputs() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(12)
    return {
        name: rng.standard_normal(_shape(rows)).astype(np.float32) / 3
        for name, rows in (("q", QUERIES), ("k", KEYS), ("v", KEYS))
    }


@pytest.mark.parametrize(("chip", "fp32_cast"), PRECISIONS)
def test_as_onnxruntime(chip: str, fp32_cast: str) -> None:
    check(_model(), _inputs(), chip, fp32_cast, ROUNDINGS)


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
def test_no_result_lies_on_a_single_partition(chip: str) -> None:
    """Written into rows of all windows, of which each is five apart, results would come on one partition at a time."""
    kernels, _ = make_kernels(graph_of(_model()), load_rules(), load_device(chip))
    products = [kernel for kernel in kernels if isinstance(kernel.root, Product)]
    assert products
    assert min(kernel.channel.extent for kernel in products) >= QUERIES
