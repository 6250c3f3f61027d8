"""32-bit integers, which float32 does not hold, are copied bit for bit: spread, cut, turned and put together."""

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

import tvm_neuron
from tests.codegen.on_core import check
from tests.onnx_models import make_model

NODE = helper.make_node
MOVES = ("spread over images", "spread along rows", "cut", "turned", "side by side", "below each other")
LIMITS = np.iinfo(np.int32)


def model_of(op: str, shape: tuple[int, ...], dtype: int) -> onnx.ModelProto:
    """One operator that moves integers [rows, columns]."""
    rows, columns = shape
    weights: dict[str, Any] = {
        "to": np.array([3, rows, columns]), "wide": np.array([rows, 7, columns]), "first": np.array([1]),
        "begin": np.array([rows // 2, columns // 3]), "end": np.array([rows, columns]),
    }  # fmt: skip
    nodes = {
        "spread over images": [NODE("Expand", ["x", "to"], ["y"])],
        "spread along rows": [NODE("Unsqueeze", ["x", "first"], ["u"]), NODE("Expand", ["u", "wide"], ["y"])],
        "cut": [NODE("Slice", ["x", "begin", "end"], ["y"])],
        "turned": [NODE("Transpose", ["x"], ["y"])],
        "side by side": [NODE("Concat", ["x", "x"], ["y"], axis=1)],
        "below each other": [NODE("Concat", ["x", "x"], ["y"], axis=0)],
    }
    return make_model(nodes[op], {"x": shape}, ["y"], weights, dtype=dtype)


@settings(max_examples=20, deadline=None)
@given(
    op=st.sampled_from(MOVES), rows=st.integers(1, 150), columns=st.integers(1, 40), is_long=st.booleans(),
    chip=st.sampled_from(["inf1", "inf2"]),
)  # fmt: skip
@example(op="spread along rows", rows=100, columns=1, is_long=False, chip="inf2")
def test_every_bit(op: str, rows: int, columns: int, is_long: bool, chip: str) -> None:
    dtype = TensorProto.INT64 if is_long else TensorProto.INT32
    x = np.random.default_rng(rows).integers(LIMITS.min, LIMITS.max, (rows, columns), endpoint=True)
    check(model_of(op, (rows, columns), dtype), {"x": x.astype(helper.tensor_dtype_to_np_dtype(dtype))}, chip, "all")


@pytest.mark.parametrize("dtype", [TensorProto.INT32, TensorProto.INT64])
def test_rows_are_spread_by_engines(dtype: int) -> None:
    """Number by number, DMA took 450 times as long as DRAM needs."""
    shape = {"wide": np.array([100, 12544]), "column": np.array([100, 1])}
    nodes = [NODE("Reshape", ["x", "column"], ["c"]), NODE("Expand", ["c", "wide"], ["y"])]
    model = make_model(nodes, {"x": (100,)}, ["y"], shape, dtype=dtype)
    report = tvm_neuron.report(tvm_neuron.compile(model, target="neuron/inf2"))
    assert report.latency_us < 3 * report.roofline_us
