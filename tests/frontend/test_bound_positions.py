"""Sums of integers that only choose rows of a table run on the core, and choose the same rows.

On inf2: the DMA of inf1 has no computed addresses.
"""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from onnx import ModelProto, TensorProto, helper

import tvm_neuron
from tests.codegen.on_core import check, on_core
from tests.onnx_models import make_model
from tvm_neuron.errors import PositionError

NODE = helper.make_node


def columns(sizes: list[int], batch: int, sum_op: str = "Add", kept: str = "") -> ModelProto:
    """One table for all columns, each of which begins behind those before; `kept` names a further output."""
    offsets = np.cumsum([0, *sizes[:-1]]).astype(np.int64)
    table = np.random.default_rng(len(sizes)).standard_normal((sum(sizes), 8)).astype(np.float32)
    weights = {"offsets": offsets if sum_op == "Add" else -offsets, "table": table}
    nodes = [
        NODE(sum_op, ["x", "offsets"], ["at"]),
        NODE("Gather", ["table", "at"], ["rows"], axis=0),
        NODE("Relu", ["rows"], ["y"]),
    ]
    outputs = ["y", kept] if kept else ["y"]
    return make_model(nodes, {"x": (batch, len(sizes))}, outputs, weights, dtype=TensorProto.INT64)


@settings(max_examples=15, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 60), min_size=1, max_size=6), batch=st.integers(1, 9),
    sum_op=st.sampled_from(["Add", "Sub"]), seed=st.integers(0, 9),
)  # fmt: skip
@example(sizes=[5, 3, 40], batch=4, sum_op="Add", seed=0)
def test_the_same_rows_are_chosen(sizes: list[int], batch: int, sum_op: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = np.stack([rng.integers(0, size, batch) for size in sizes], axis=1)
    check(columns(sizes, batch, sum_op), {"x": x}, "inf2", "all")


@pytest.mark.parametrize("far", [2**22, 2**24 + 1, 2**30, -(2**24) - 1, -(2**30)])
def test_a_row_that_is_not_there_is_still_told(far: int) -> None:
    x = np.zeros((2, 3), np.int64)
    x[1, 2] = far
    with pytest.raises(PositionError, match="lies outside of the 48 elements that it chooses from"):
        on_core(columns([5, 3, 40], 2), {"x": x}, "inf2")


def test_what_is_read_besides_stays_exact() -> None:
    """As an output, the sum of any two integers is what it was: on the CPU."""
    model = columns([5, 3, 40], 2, kept="at")
    report = tvm_neuron.report(tvm_neuron.compile(model, target="neuron/inf2"))
    assert [row.op for row in report.placed("cpu")] == ["Add"]
