"""relay.qnn.op: whole numbers that stand for others, against NumPy in float64."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tvm_neuron import relay
from tvm_neuron.errors import ModelError

RNG = np.random.default_rng(8)
qnn = relay.qnn.op


def _run(expr: Any, *values: np.ndarray) -> np.ndarray:
    func = relay.Function(relay.analysis.free_vars(expr), expr)
    return np.asarray(relay.create_executor("graph", target="neuron/inf2").evaluate(func)(*values).numpy())


def _scale(value: Any) -> Any:
    return relay.const(value, "float32")


def _zero(value: Any) -> Any:
    return relay.const(value, "int32")


def _stored(real: np.ndarray, scale: float, zero: int, dtype: str) -> np.ndarray:
    info = np.iinfo(dtype)
    return np.clip(np.floor(real / scale + 0.5) + zero, info.min, info.max)


def _var(name: str, value: np.ndarray) -> Any:
    return relay.var(name, shape=value.shape, dtype=str(value.dtype))


def test_operators_and_passes_are_in_the_package_too() -> None:
    assert relay.qnn.requantize is qnn.requantize
    assert relay.qnn.transform.CanonicalizeOps().info.name == "CanonicalizeOps"


def test_quantize_and_back() -> None:
    x = np.float32([[-40, -0.5, -0.25, 0.24], [0.25, 0.5, 3, 40]])  # halves, and what saturates
    found = _run(qnn.quantize(_var("x", x), _scale(0.5), _zero(3)), x)
    np.testing.assert_array_equal(found, np.int8([[-77, 2, 2, 3], [4, 4, 9, 83]]))  # halves away from zero
    by_row = _run(qnn.quantize(_var("x", x), _scale([0.5, 0.25]), _zero([3, 0]), axis=0, out_dtype="uint8"), x)
    np.testing.assert_array_equal(by_row, np.uint8([[0, 2, 2, 3], [1, 2, 12, 160]]))
    numbers = RNG.integers(-128, 127, (3, 4)).astype("int8")
    back = _run(qnn.dequantize(_var("q", numbers), _scale([0.5, 0.25, 2.0]), _zero([1, 2, 3]), axis=0), numbers)
    np.testing.assert_array_equal(back, (numbers - [[1], [2], [3]]) * np.array([[0.5], [0.25], [2.0]]))


@pytest.mark.parametrize(("rounding", "half"), [("UPWARD", -1), ("TONEAREST", -2), ("None", -1)])
def test_requantize(rounding: str, half: int) -> None:
    x = np.append(RNG.integers(-3000, 3000, 99), [-3]).astype("int32")  # the last is -1.5 of the new ones
    args = (_scale(0.25), _zero(0), _scale(0.5), _zero(0))
    found = _run(qnn.requantize(_var("x", x), *args, rounding=rounding, out_dtype="int16"), x)
    assert found[-1] == half
    assert abs(found - x * 0.5).max() <= 0.5
    with pytest.raises(ModelError, match="rounding is 'DOWN'; there are UPWARD and TONEAREST"):
        _run(qnn.requantize(_var("x", x), *args, rounding="DOWN"), x)
    with pytest.raises(ModelError, match="out_dtype is 'int4'; there are uint8, int8"):
        _run(qnn.requantize(_var("x", x), *args, out_dtype="int4"), x)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_a_convolution_its_bias_and_its_new_scale(layout: str) -> None:
    x, w = RNG.integers(0, 255, (1, 4, 6, 6)).astype("uint8"), RNG.integers(-100, 100, (8, 4, 3, 3)).astype("int8")
    bias = RNG.integers(-500, 500, 8).astype("int32")
    is_last = layout == "NHWC"
    given, weights = (x.transpose(0, 2, 3, 1), w.transpose(2, 3, 1, 0)) if is_last else (x, w)
    scales = np.float32(RNG.uniform(0.01, 0.05, 8))
    args = (_zero(128), _zero(0), _scale(0.05), _scale(scales), (3, 3), 8)
    total = qnn.conv2d(
        _var("x", given), _var("w", weights), *args, padding=(1, 1), data_layout=layout,
        kernel_layout="HWIO" if is_last else "OIHW",
    )  # fmt: skip
    axis = 3 if is_last else 1
    total = relay.nn.bias_add(total, relay.const(bias), axis=axis)
    result = qnn.requantize(total, _scale(scales * np.float32(0.05)), _zero(0), _scale(0.7), _zero(5), axis=axis)
    found = _run(result, given, weights).astype(int)
    padded = np.pad(x.astype(int) - 128, ((0, 0), (0, 0), (1, 1), (1, 1)))
    exact = sum(
        np.einsum("nchw,oc->nohw", padded[:, :, i : i + 6, j : j + 6], w[:, :, i, j].astype(int))
        for i in range(3)
        for j in range(3)
    )
    real = (exact + bias[:, None, None]) * (scales * 0.05)[:, None, None]
    expected = _stored(real, 0.7, 5, "int8")
    found = found.transpose(0, 3, 1, 2) if is_last else found
    assert abs(found - expected).max() <= 1  # of a quotient that float32 has on the other side of a half
    assert (found != expected).mean() < 0.01


def test_products_of_matrices() -> None:
    x, w = RNG.integers(0, 255, (5, 12)).astype("uint8"), RNG.integers(-128, 127, (7, 12)).astype("int8")
    zeros = RNG.integers(-9, 9, 7).astype("int32")
    dense = qnn.dense(_var("x", x), _var("w", w), _zero(101), _zero(zeros), _scale(1.0), _scale(1.0), 7)
    np.testing.assert_array_equal(_run(dense, x, w), (x.astype(int) - 101) @ (w - zeros[:, None].astype(int)).T)
    a, b = RNG.integers(0, 255, (2, 5, 12)).astype("uint8"), RNG.integers(0, 255, (2, 7, 12)).astype("uint8")
    batched = qnn.batch_matmul(_var("a", a), _var("b", b), _zero(3), _zero(200), _scale(1.0), _scale(1.0))
    np.testing.assert_array_equal(_run(batched, a, b), (a.astype(int) - 3) @ (b.astype(int) - 200).transpose(0, 2, 1))


BINARY: dict[str, Callable[..., Any]] = {"add": np.add, "subtract": np.subtract, "mul": np.multiply}


@pytest.mark.parametrize("name", BINARY)
def test_arithmetic(name: str) -> None:
    one, other = (RNG.integers(0, 255, (3, 50)).astype("uint8") for _ in range(2))
    scales = (_scale(0.1), _zero(100), _scale(0.2), _zero(90), _scale(0.4), _zero(120))
    found = _run(getattr(qnn, name)(_var("a", one), _var("b", other), *scales), one, other)
    real = BINARY[name]((one.astype(float) - 100) * 0.1, (other.astype(float) - 90) * 0.2)
    assert abs(found - _stored(real, 0.4, 120, "uint8")).max() <= 1  # quotients are halves here often
    side = qnn.concatenate(
        [_var("a", one), _var("b", other)], [_scale(0.1), _scale(0.2)], [_zero(100), _zero(90)], _scale(0.4),
        _zero(120), axis=1,
    )  # fmt: skip
    joined = np.concatenate([(one.astype(float) - 100) * 0.1, (other.astype(float) - 90) * 0.2], 1)
    assert abs(_run(side, one, other) - _stored(joined, 0.4, 120, "uint8")).max() <= 1


UNARY: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "tanh": np.tanh, "exp": np.exp, "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "abs": np.abs,
    "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "softmax": lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True),
}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_functions(name: str) -> None:
    x = RNG.integers(0, 255, (3, 20)).astype("uint8")
    found = _run(getattr(qnn, name)(_var("x", x), _scale(0.02), _zero(128), _scale(0.05), _zero(10)), x)
    real = UNARY[name]((x.astype(float) - 128) * 0.02)
    assert abs(found - _stored(real, 0.05, 10, "uint8")).max() <= 1  # a number beside a half
    assert found.std() > 0 or name == "softmax"


def test_a_leaky_relu() -> None:
    x = RNG.integers(0, 255, (3, 20)).astype("uint8")
    found = _run(qnn.leaky_relu(_var("x", x), 0.25, _scale(0.02), _zero(128), _scale(0.03), _zero(50)), x)
    real = (x.astype(float) - 128) * 0.02
    assert abs(found - _stored(np.where(real > 0, real, 0.25 * real), 0.03, 50, "uint8")).max() <= 1
