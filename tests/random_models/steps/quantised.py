"""Quantised forms: to bytes and back, weights as bytes, products of bytes."""

import numpy as np

from tests.random_models.evaluate import UnfitError
from tests.random_models.growth import Growth
from tests.random_models.value import Value


def _weights(g: Growth, inner: int, width: int) -> np.ndarray:
    """Of 7 bits: where the processor has no VNNI, onnxruntime adds two products of more to at most 32,767."""
    return g.rng.integers(-64, 64, [inner, width]).astype(np.int8)


def _scale(g: Growth, x: Value) -> np.ndarray:
    return np.array(max(float(np.abs(x.exact).max()), 0.1) / 100, x.exact.dtype)


def _zero(g: Growth, dtype: str) -> Value:
    return g.constant(np.array(g.one_of([0, 3, 10]) if dtype == "int8" else g.one_of([0, 128, 100]), dtype))


def quantise(g: Growth) -> None:
    """To bytes; the scale makes their edges lie far from quarters where x holds such."""
    x = g.floats(0, 6, lambda v: v.dtype == "float32" or (v.dtype == "float16" and g.opset >= 19))
    dtype = g.one_of(["int8", "uint8"])
    scale = g.constant(np.array(g.one_of([0.25, 0.5, 1.0]), x.exact.dtype))
    y = g.add("QuantizeLinear", x, scale, _zero(g, dtype))
    zero = g.constant(np.zeros((), y.exact.dtype))
    if g.chance(0.7):
        g.add("DequantizeLinear", y, scale, zero)


def rounded(g: Growth) -> None:
    """To bytes and back, with any scale."""
    x = g.floats(0, 6, lambda v: v.dtype == "float32")
    dtype = g.one_of(["int8", "uint8"])
    scale, zero = g.constant(_scale(g, x)), _zero(g, dtype)
    g.add("DequantizeLinear", g.add("QuantizeLinear", x, scale, zero), scale, zero)


def dequantise(g: Growth) -> None:
    x = g.of_dtype(("int8", "uint8"))
    if x.rank and g.chance(0.4):
        axis = g.draw(0, x.rank - 1)
        count = x.shape[axis]
        scale = g.constant(g.rng.uniform(0.01, 0.1, count).astype("float32"))
        zero = g.constant(g.rng.integers(0, 5, count).astype(x.dtype))
        g.add("DequantizeLinear", x, scale, *([zero] if g.chance(0.6) else []), axis=axis)
    else:
        scale = g.constant(np.float32(g.rng.uniform(0.01, 0.1)))
        g.add("DequantizeLinear", x, scale, *([_zero(g, x.dtype)] if g.chance(0.6) else []))


def weights_of_bytes(g: Growth) -> None:
    """A product by dequantised weights, with a scale by column."""
    x = g.floats(2, 4, lambda v: v.dtype == "float32")
    inner, width = x.shape[-1], g.one_of([3, 16, 65])
    whole = g.constant(g.rng.integers(-127, 128, [inner, width]).astype(np.int8))
    if g.chance(0.5):
        scale = g.constant((g.rng.uniform(0.5, 1.5, width) * inner**-0.5 / 127).astype("float32"))
        weights = g.add("DequantizeLinear", whole, scale, axis=1)
    else:
        weights = g.add("DequantizeLinear", whole, g.constant(np.float32(inner**-0.5 / 127)))
    g.add("MatMul", x, weights)


def integer_matmul(g: Growth) -> None:
    x = g.of_dtype(("int8", "uint8"), g.draw(2, 3))
    width = g.draw(1, 20)
    weights = g.constant(_weights(g, x.shape[-1], width))
    zeros = [_zero(g, x.dtype)] if g.chance(0.6) else []
    y = g.add("MatMulInteger", x, weights, *zeros)
    if g.chance(0.6):
        g.add("Mul", g.add("Cast", y, to=1), g.constant(np.float32(0.003)))


def integer_conv(g: Growth) -> None:
    x = g.of_dtype(("uint8",), 4)
    kernel = [g.draw(1, min(3, extent)) for extent in x.shape[2:]]
    weights = g.constant(g.rng.integers(0, 256, [g.draw(1, 8), x.shape[1], *kernel]).astype(np.uint8))
    zeros = [_zero(g, "uint8")] if g.chance(0.6) else []
    g.add("ConvInteger", x, weights, *zeros)


def quantised_product(g: Growth) -> None:
    """QLinearMatMul or QLinearConv."""
    x = g.of_dtype(("int8", "uint8"), g.draw(2, 4))
    a_scale, b_scale, y_scale = (g.constant(np.float32(number)) for number in (0.03, 0.02, g.one_of([0.5, 0.9])))
    zeros = [_zero(g, x.dtype) for _ in range(2)]
    if x.rank == 4 and x.dtype == "uint8":
        kernel = [g.draw(1, min(3, extent)) for extent in x.shape[2:]]
        weights = g.constant(g.rng.integers(0, 256, [g.draw(1, 8), x.shape[1], *kernel]).astype(np.uint8))
        g.add("QLinearConv", x, a_scale, zeros[0], weights, b_scale, _zero(g, "uint8"), y_scale, zeros[1])
    else:
        weights = g.constant(_weights(g, x.shape[-1], g.draw(1, 9)).astype(x.dtype))
        g.add("QLinearMatMul", x, a_scale, zeros[0], weights, b_scale, _zero(g, x.dtype), y_scale, zeros[1])


def dynamic(g: Growth) -> None:
    """Quantised by its own range, multiplied as bytes."""
    x = g.floats(2, 3, lambda v: v.dtype == "float32")
    if x.exact.size > 300:
        raise UnfitError("some element would lie at an edge")
    y, scale, zero = g.add_many("DynamicQuantizeLinear", [x], 3)
    weights = g.constant(_weights(g, x.shape[-1], g.draw(1, 9)))
    g.add("Mul", g.add("Cast", g.add("MatMulInteger", y, weights, zero), to=1), scale)


STEPS = (quantise, rounded, dequantise, dequantise, weights_of_bytes, weights_of_bytes, integer_matmul, integer_conv,
         quantised_product, dynamic)  # fmt: skip
