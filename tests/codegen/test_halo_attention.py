"""Attention of blocks of pixels to the pixels around them (HaloNet), with relative positions of rows and columns."""

import numpy as np
import onnx
import tvm

from tests.codegen.on_core import ROUNDING
from tests.onnx_models import reference
from tvm_neuron import BuildOptions, relay

HEADS, WIDTH, BLOCKS = 8, 8, 4
ROUNDINGS = 20
"""Operands of three convolutions and four products, and what lies between them."""


def _model() -> onnx.ModelProto:
    """A map in 4 x 4 blocks of 8 x 8, each with windows of 14 x 14, and as many channels of k as of v."""
    channels, size, number, rng = HEADS * WIDTH, 8 * BLOCKS, BLOCKS**2, np.random.default_rng(3)
    model = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 19]> g (float[1, {channels}, {size}, {size}] x)
        => (float[1, 8, {size}, {size}] y) <
        int64[{BLOCKS}, 14] at = {{ {", ".join(str(8 * block + n) for block in range(BLOCKS) for n in range(14))} }},
        int64[6] blocks = {{ {HEADS}, {WIDTH}, {BLOCKS}, 8, {BLOCKS}, 8 }},
        int64[4] queries = {{ {HEADS}, {WIDTH}, 64, {number} }},
        int64[4] windows = {{ {HEADS}, {2 * WIDTH}, {number}, 196 }}, int64[8] halo = {{ 0, 0, 3, 3, 0, 0, 3, 3 }},
        int64[4] images = {{ {number * HEADS}, 8, 8, {WIDTH} }}, int64[3] rows = {{ -1, 8, 27 }},
        int64[2] flat = {{ -1, 224 }},
        int64[6] one = {{ 0, 0, 0, 0, 0, 1 }}, int64[4] rest = {{ 0, 0, 0, 19 }}, int64[3] shifted = {{ -1, 9, 27 }},
        int64[2] first = {{ 0, 13 }}, int64[2] last = {{ 8, 27 }}, int64[2] axes = {{ 1, 2 }},
        int64[5] own = {{ {number * HEADS}, 8, 1, 8, 14 }}, int64[5] spread = {{ {number * HEADS}, 8, 14, 8, 14 }},
        int64[4] scores = {{ {HEADS}, {number}, 64, 196 }}, int64[2] halves = {{ {WIDTH}, {WIDTH} }},
        int64[6] out = {{ {HEADS}, {WIDTH}, 8, 8, {BLOCKS}, {BLOCKS} }},
        int64[4] image = {{ 1, {channels}, {size}, {size} }}
        > {{
        q = Conv(x, wq)  in_blocks = Reshape(q, blocks)  by_block = Transpose<perm = [0, 1, 3, 5, 2, 4]>(in_blocks)
        columns = Reshape(by_block, queries)  each = Transpose<perm = [0, 3, 2, 1]>(columns)
        kv = Conv(x, wkv)  wider = Pad(kv, halo)
        high = Gather<axis = 2>(wider, at)  higher = Transpose<perm = [0, 1, 2, 4, 3]>(high)
        wide = Gather<axis = 3>(higher, at)  windowed = Transpose<perm = [0, 1, 2, 4, 3, 5]>(wide)
        by_window = Transpose<perm = [0, 1, 2, 5, 3, 4]>(windowed)
        near = Reshape(by_window, windows)  keyed = Transpose<perm = [0, 2, 3, 1]>(near)
        k, v = Split<axis = 3>(keyed, halves)  turned = Transpose<perm = [0, 1, 3, 2]>(k)
        found = MatMul(each, turned)
        pixels = Reshape(each, images)
        across = MatMul(pixels, wx)  x0 = Reshape(across, rows)  x1 = Pad(x0, one)  x2 = Reshape(x1, flat)
        x3 = Pad(x2, rest)  x4 = Reshape(x3, shifted)  x5 = Slice(x4, first, last, axes)
        x6 = Reshape(x5, own)  x7 = Expand(x6, spread)  x8 = Transpose<perm = [0, 1, 3, 2, 4]>(x7)
        standing = Transpose<perm = [0, 2, 1, 3]>(pixels)
        along = MatMul(standing, wy)  y0 = Reshape(along, rows)  y1 = Pad(y0, one)  y2 = Reshape(y1, flat)
        y3 = Pad(y2, rest)  y4 = Reshape(y3, shifted)  y5 = Slice(y4, first, last, axes)
        y6 = Reshape(y5, own)  y7 = Expand(y6, spread)  y8 = Transpose<perm = [0, 3, 1, 4, 2]>(y7)
        where = Add(x8, y8)  bias = Reshape(where, scores)
        placed = Add(found, bias)  shares = Softmax<axis = -1>(placed)  mixed = MatMul(shares, v)
        back = Transpose<perm = [0, 3, 2, 1]>(mixed)  parts = Reshape(back, out)
        together = Transpose<perm = [0, 1, 4, 2, 5, 3]>(parts)  whole = Reshape(together, image)
        positive = Relu(whole)  y = Conv(positive, wo) }}"""
    )
    shapes = {
        "wq": (channels, channels, 1, 1),
        "wkv": (2 * channels, channels, 1, 1),
        "wo": (8, channels, 1, 1),
        "wx": (WIDTH, 27),
        "wy": (WIDTH, 27),
    }
    for name, shape in shapes.items():
        values = (rng.standard_normal(shape) / np.sqrt(shape[1] if len(shape) > 2 else shape[0])).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(values, name))
    return model


def test_heads_computed_apart() -> None:
    """Too many scores for all heads at once, and no dimension of them lies so that one would begin at partition 1."""
    x = np.random.default_rng(4).standard_normal((1, HEADS * WIDTH, 8 * BLOCKS, 8 * BLOCKS)).astype(np.float32)
    model = _model()
    mod, params = relay.frontend.from_onnx(model)
    library = relay.build(mod, "neuron/inf1", params=params, options=BuildOptions(optlevel=1, must_compile=True))
    executor = relay.graph_executor.GraphModule(library["default"](tvm.cpu()))
    executor.run(x=x)
    (wanted,) = reference(model, {"x": x})
    off = np.linalg.norm(executor.get_output(0).numpy().astype(np.float64) - wanted)
    assert off <= ROUNDINGS * ROUNDING["all"] * np.linalg.norm(wanted)
