"""Kernels in vectors: those that LLVM makes of loops itself, and loops that TVM makes vectors of."""

from collections.abc import Callable

import numpy as np
import onnx
import pytest
import tvm
from numpy.typing import NDArray
from onnx import numpy_helper
from tvm import relax, te, tirx

from tests.onnx_models import reference
from tvm_neuron import BuildOptions, relay
from tvm_neuron.codegen import cpu

FEW_TAPS_IN_PADDING = """<ir_version: 10, opset_import: ["": 13]>
    g (int32[8] x) => (float[4, 4, 2, 1] y) <int64[4] shape = {4, 1, 2, 1}, int64[2] starts = {0, 3},
        int64[2] ends = {4, -2147483648}, int64[2] axes = {-4, 1}, int64[2] steps = {1, -1}>
    { negative = Neg(x)  image = Reshape(negative, shape)  floats = Cast<to: int = 1>(image)
      five = Conv<dilations: ints = [12, 6], pads: ints = [24, 0, 24, 0]>(floats, weights, bias)
      y = Slice(five, starts, ends, axes, steps) }"""


def test_straight_code_is_not_vectorised_into_what_llvm_refuses() -> None:
    """Found by random models: channels in another order of a convolution that mostly sees its padding."""
    rng = np.random.default_rng(0)
    model = onnx.parser.parse_model(FEW_TAPS_IN_PADDING)
    for name, shape in {"weights": (5, 1, 5, 1), "bias": (5,)}.items():
        model.graph.initializer.append(numpy_helper.from_array(rng.standard_normal(shape, dtype=np.float32), name))
    x = rng.integers(-50, 50, 8, dtype=np.int32)
    mod, params = relay.frontend.from_onnx(model)
    library = relay.build(mod, target="neuron", params=params, options=BuildOptions(on_cpu=("*",)))
    executor = relay.graph_executor.GraphModule(library["default"](tvm.cpu()))
    executor.run(x=x)
    (wanted,) = reference(model, {"x": x})
    # sums of at most five products, in float32, of numbers up to 150
    np.testing.assert_allclose(executor.get_output(0).numpy(), wanted, rtol=1e-5, atol=1e-4)


Pair = tuple[tirx.Expr, NDArray]
"""An expression and its values."""


def _cast(pair: Pair, dtype: str) -> Pair:
    expression, array = pair
    number = tirx.isnan(expression)
    whole = tirx.Select(number, tirx.const(0, "int32"), expression.astype("int32"))
    return whole.astype(dtype).astype("float32"), np.nan_to_num(array).astype("int32").astype(dtype).astype("float32")


def _drawn(rng: np.random.Generator, leaves: list[Pair], depth: int) -> Pair:
    """What is computed of leaves, exactly: they are small whole numbers or NaN."""
    if depth == 0:
        return leaves[rng.integers(len(leaves))]
    one, other = _drawn(rng, leaves, depth - 1), _drawn(rng, leaves, int(rng.integers(depth)))
    number = int(rng.integers(-2, 2)) + 0.5
    ways: list[Callable[[], Pair]] = [
        lambda: (tirx.max(one[0], other[0]), np.maximum(one[1], other[1])),
        lambda: (tirx.min(one[0], number), np.minimum(one[1], number)),
        lambda: (tirx.max(number, one[0]), np.maximum(number, one[1])),
        lambda: (one[0] + other[0], one[1] + other[1]),
        lambda: (one[0] - number, one[1] - number),
        lambda: (one[0] * number, one[1] * number),
        lambda: (number * one[0], number * one[1]),
        lambda: (tirx.nearbyint(one[0]) * leaves[0][0], np.round(one[1]) * leaves[0][1]),
        lambda: (tirx.nearbyint(one[0]), np.round(one[1])),
        lambda: _cast(one, "int8"),
        lambda: _cast(one, "uint8"),
        lambda: (tirx.Select(one[0] > other[0], one[0], number), np.where(one[1] > other[1], one[1], number)),
        lambda: (tirx.Select(tirx.isnan(one[0]), other[0], one[0]), np.where(np.isnan(one[1]), other[1], one[1])),
    ]  # fmt: skip
    return ways[rng.integers(len(ways))]()


@pytest.mark.parametrize("seed", range(24))
def test_what_is_read_several_times_in_rows(seed: int) -> None:
    """Found by a random model: a cast of what was rounded and clipped, times a number, in a row of a norm."""
    rng = np.random.default_rng(seed)
    given = rng.integers(-4, 5, (2, 3, 8)).astype("float32")
    given[0, 0, 2] = np.nan

    def kernel(x: te.Tensor) -> te.Tensor:
        along = te.reduce_axis((0, 8), "along")
        total = te.compute((2, 3), lambda *at: te.sum(x(*at, along), along), "total")
        return te.compute((2, 3, 8), lambda *at: drawn((x(*at), total(*at[:2])))[0], "drawn")

    def drawn(of: tuple[tirx.Expr, tirx.Expr]) -> Pair:
        arrays = given, np.broadcast_to(given.sum(-1, keepdims=True), given.shape)
        return _drawn(np.random.default_rng(seed), list(zip(of, arrays, strict=True)), 4)

    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((2, 3, 8), "float32"))
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit_te(kernel, x))
    with tvm.target.Target("llvm"):
        built = relax.build(cpu.lower(builder.get()), "llvm", relax_pipeline=None)
    found = relax.VirtualMachine(built, tvm.cpu())["main"](tvm.runtime.tensor(given)).numpy()
    one = tirx.const(0, "float32")
    np.testing.assert_array_equal(found, drawn((one, one))[1])
