"""What random models found, cut down: all of it on the core, as onnxruntime has it."""

import numpy as np
import onnx
import pytest

from tests.codegen.on_core import check

HEAD = '<ir_version: 10, opset_import: ["": 19]>'
ONE_CHANNEL_OF_SCALED = """m (int8[5, 2] x) => (float[5, 1] y)
    <float[2] scales = {0.027, 0.076}, int8[2] noughts = {4, 0}, int64[1] first = {0}, int64[1] end = {-9},
     int64[1] one = {1}, int64[1] step = {-2}>
    { scaled = DequantizeLinear<axis: int = 1>(x, scales, noughts)  y = Slice(scaled, first, end, one, step) }"""
POSITION_AMONG_EQUALS = """m (float16[1, 1] x) => (int64[2, 1] y) <int64[4] around = {0, 3, 1, 0}>
    { many = Pad<mode: string = "edge">(x, around)  y = ArgMax<axis: int = 1>(many) }"""
PARTITIONS_OF_AN_OUTPUT_IN_TILES = """m (float[2, 33, 48] x, float[2, 3, 12, 16] past)
    => (float[2, 12, 45, 16] y, float[2, 3, 1, 720] whole, float[2, 3, 4, 720] sums)
    <int64[4] apart = {2, 33, 3, 16}, int64[4] long = {2, 3, 1, 720}, int64[4] times = {1, 1, 4, 1},
     int64[4] heads = {2, 12, 45, 16}, int64 first = {0}>
    { cut = Reshape(x, apart)  turned = Transpose<perm: ints = [0, 2, 1, 3]>(cut)
      all = Concat<axis: int = 2>(past, turned)  rows = Reshape(all, long)  repeated = Tile(rows, times)
      y = Reshape(repeated, heads)  sums = CumSum<reverse: int = 1>(repeated, first)  whole = Round(rows) }"""

SHARES_OF_A_CONSTANT = """m (float[1, 3] x) => (float[2, 3] y) <float[2, 3] given = {0.5, -2, 0.25, 3, 4, -5}>
    { shares = LpNormalization<axis: int = -1, p: int = 1>(given)  y = Add(shares, x) }"""

ROWS_OF_SCALED_CHANNELS = """m (float[4, 7, 64] x) => (float[4, 7, 64] y)
    <float[7] scale = {1, 0.5, 1.25, 1, 0.75, 0.75, 0.5}, float[7] shift = {0, 0, 0.25, 0, 0.5, 0, 0.5},
     float[7] mean = {-0.25, 0.5, -0.25, 0, 0, 0, -0.5}, float[7] var = {1.5, 1.5, 0.5, 1.25, 0.75, 0.5, 0.75}>
    { normal = BatchNormalization(x, scale, shift, mean, var)  bounded = Tanh(normal)  y = Exp(bounded) }"""
MINIMA_WITH_WHAT_IS_READ_BACKWARDS = """m (float[33, 1, 16] x) => (float[1, 1, 1] y)
    <int64 first = {0}, int64[3] axes = {-2, -3, 2}>
    { sums = CumSum<exclusive: int = 1, reverse: int = 1>(x, first)  least = Min(sums, x)
      y = ReduceLogSumExp<keepdims: int = 1>(least, axes) }"""

SUMS_OF_WHAT_IS_REPEATED = """m (float[1, 12, 2, 6, 5] x) => (float[2, 12, 2, 6, 5] y)
    <int64[5] shape = {2, 12, 2, 6, 5}, int64[1] axis = {-1}, float two = {2}>
    { twice = Mean(x, x)  many = Expand(twice, shape)
      mean = ReduceMean<keepdims: int = 1>(many, axis)  apart = Sub(many, mean)
      squares = Pow(apart, two)  variance = ReduceMean<keepdims: int = 1>(squares, axis)  y = Mul(apart, variance) }"""
SUMS_OF_TILES = """m (float[2, 4, 2] x) => (float[2, 4, 12, 6, 3] y)
    <int64[2] axes = {4, 0}, int64[5] times = {2, 2, 3, 3, 3}, int64 third = {-3}>
    { apart = Unsqueeze(x, axes)  many = Tile(apart, times)  y = CumSum<exclusive: int = 1>(many, third) }"""


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
@pytest.mark.parametrize(
    "text",
    [
        ONE_CHANNEL_OF_SCALED,
        POSITION_AMONG_EQUALS,
        PARTITIONS_OF_AN_OUTPUT_IN_TILES,
        SHARES_OF_A_CONSTANT,
        ROWS_OF_SCALED_CHANNELS,
        MINIMA_WITH_WHAT_IS_READ_BACKWARDS,
        SUMS_OF_WHAT_IS_REPEATED,
        SUMS_OF_TILES,
    ],
)
def test_as_onnxruntime(text: str, chip: str) -> None:
    model = onnx.parser.parse_model(HEAD + text)
    rng = np.random.default_rng(0)
    inputs = {}
    for given in model.graph.input:
        shape = [dim.dim_value for dim in given.type.tensor_type.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(given.type.tensor_type.elem_type)
        inputs[given.name] = (rng.integers(-99, 99, shape) / 4).astype(dtype)
    check(model, inputs, chip, "all")
