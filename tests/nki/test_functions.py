"""Every elementwise function of the language that stands in no other test, beside NumPy in float64."""

import math
from collections.abc import Callable

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np
import pytest

from tvm_neuron.errors import KernelError

TOLERANCE = 2e-6  # some roundings to float32
erf = np.vectorize(math.erf)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


ONE = {
    "cos": np.cos, "tan": np.tan, "sin": np.sin, "arctan": np.arctan, "erf": erf,
    "softplus": lambda x: np.log1p(np.exp(x)),
    "erf_dx": lambda x: 2 / math.sqrt(math.pi) * np.exp(-x * x),
    "gelu_dx": lambda x: (1 + erf(x / math.sqrt(2))) / 2 + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi),
    "silu": lambda x: x * sigmoid(x), "silu_dx": lambda x: sigmoid(x) * (1 + x * (1 - sigmoid(x))),
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))), "gelu_apprx_sigmoid": lambda x: x * sigmoid(1.702 * x),
    "gelu_apprx_sigmoid_dx": lambda x: sigmoid(1.702 * x) * (1 + 1.702 * x * (1 - sigmoid(1.702 * x))),
    "gelu_apprx_tanh": lambda x: x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
}  # fmt: skip
TWO = {
    "minimum": np.minimum, "mod": np.mod, "fmod": np.fmod, "less_equal": np.less_equal, "not_equal": np.not_equal,
    "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor,
}  # fmt: skip
BITS = {
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
    "left_shift": np.left_shift,
    "right_shift": lambda a, b: np.right_shift(a.view(np.uint32), b.view(np.uint32)).view(np.int32),
}  # fmt: skip


def of_two(function: Callable, a: np.ndarray, b: object) -> np.ndarray:
    @nki.jit
    def kernel(a, b):
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        nl.store(out, value=function(nl.load(a), b if isinstance(b, int | float) else nl.load(b)))
        return out

    return kernel(a, b)


def floats() -> np.ndarray:
    """Of either sign, zeros among them, from which both tan and its argument are well conditioned."""
    x = np.random.default_rng(2).uniform(-1.4, 1.4, (70, 40))
    return (x * (np.abs(x) > 0.2)).astype(np.float32)


@pytest.mark.parametrize("name", ONE)
def test_of_one(name: str) -> None:
    x = floats()
    found = of_two(lambda a, _: getattr(nl, name)(a), x, 0)
    np.testing.assert_allclose(found, ONE[name](x.astype(np.float64)), rtol=16 * TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize("name", TWO)
@pytest.mark.parametrize("is_number", [False, True])
def test_of_two(name: str, is_number: bool) -> None:
    """Logical ones of any numbers: what is not 0 is true."""
    x, y = floats(), np.roll(floats(), 7)
    y = 0.7 if is_number else np.where(y == 0, 0, y) if name.startswith("logical") else np.where(y == 0, 0.5, y)
    found = of_two(getattr(nl, name), x, y if is_number else y.astype(np.float32))
    wanted = TWO[name](x, np.float32(y) if is_number else y.astype(np.float32))
    np.testing.assert_allclose(found, wanted.astype(np.float64), rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize("name", BITS)
@pytest.mark.parametrize("is_number", [False, True])
def test_of_bits(name: str, is_number: bool) -> None:
    rng = np.random.default_rng(3)
    x, y = (rng.integers(-(2**31), 2**31, (70, 40)).astype(np.int32) for _ in "xy")
    y = y % 32 if "shift" in name else y
    found = of_two(getattr(nl, name), x, 13 if is_number else y)
    assert np.array_equal(found, BITS[name](x, np.int32(13) if is_number else y))


@pytest.mark.parametrize("name", ["add", "subtract", "multiply"])
@pytest.mark.parametrize("dtype", ["int32", "uint32"])
@pytest.mark.parametrize("shape", [(70, 40), (1, 40), (70, 1)], ids=["tile", "row", "column"])
def test_whole_numbers_are_exact(name: str, dtype: str, shape: tuple[int, int]) -> None:
    """Of all 32 bits, modulo 2^32, where float32 ends at 2^24: GpSimd computes with them as they are."""
    info, rng = np.iinfo(dtype), np.random.default_rng(5)
    x, y = (rng.integers(info.min, info.max, each).astype(dtype) for each in ((70, 40), shape))
    wanted = getattr(np, name)(x.astype(np.int64), y.astype(np.int64)).astype(dtype)
    assert np.array_equal(of_two(getattr(nl, name), x, y), wanted)


def test_whole_numbers_on_vector_go_through_float32() -> None:
    x = np.full((128, 8), 2**24 + 1, np.int32)
    for engine, digits in ((nisa.vector_engine, np.float32), (nisa.gpsimd_engine, np.int32)):
        found = of_two(lambda a, b, on=engine: nisa.tensor_tensor(a, b, np.add, engine=on), x, x)
        assert np.array_equal(found, (x.astype(digits) + x.astype(digits)).astype(np.int32))


def test_whole_numbers_that_are_chosen_or_negated_stay_whole() -> None:
    x = np.random.default_rng(6).integers(-(2**31), 2**31, (70, 40)).astype(np.int32)
    assert np.array_equal(of_two(lambda a, _: nl.where(nl.greater(a, 0), a, -7), x, 0), np.where(x > 0, x, -7))
    small = x % 2**20
    assert np.array_equal(of_two(lambda a, _: nl.add(-a, a), small, 0), 0 * small)


def test_inverted() -> None:
    x = np.random.default_rng(4).integers(-(2**31), 2**31, (70, 40)).astype(np.int32)
    assert np.array_equal(of_two(lambda a, _: nl.invert(a), x, 0), ~x)
    assert np.array_equal(of_two(lambda a, _: nl.invert(nl.greater(a, 0)), x, 0), x <= 0)


@nki.jit
def by_operators(x, y, bits):
    out, found, kept = (nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm) for a in (x, bits, x))
    a, b, c = nl.load(x), nl.load(y), nl.load(bits)
    nl.store(out, (a == b) * 2.0 + (a != 1) * 2.0**a + a % 3 + 7 % (abs(b) + 1))
    nl.store(found, (~c & 255) | ((c >> 3) ^ (c << 2)) & 0x0F0F)
    nl.store(kept, nl.where(~((a > 0) & (a < 3) | (b == 1)), a, -1.0))
    assert x == x and x != y and a in [b, a][1:] and not a == None  # noqa: E711, PT018, SIM201
    return out, found, kept


def test_operators() -> None:
    """Those of Python, on tiles and numbers; tensors in device memory are compared as themselves."""
    rng = np.random.default_rng(8)
    x, y = (rng.integers(-4, 5, (64, 30)).astype(np.float32) for _ in range(2))
    bits = rng.integers(0, 2**31, (64, 30)).astype(np.int32)
    out, found, kept = by_operators(x, y, bits)
    wanted = (x == y) * 2.0 + (x != 1) * 2.0**x + np.mod(x, 3) + np.mod(7, np.abs(y) + 1)
    np.testing.assert_allclose(out, wanted, rtol=1e-6)
    np.testing.assert_array_equal(found, (~bits & 255) | ((bits >> 3) ^ (bits << 2)) & 0x0F0F)
    np.testing.assert_array_equal(kept, np.where(~((x > 0) & (x < 3) | (y == 1)), x, -1))


def test_reversed_operands() -> None:
    def function(a, b):
        left = nisa.scalar_tensor_tensor(a, np.subtract, 1.5, np.multiply, b, reverse0=True)
        return nisa.scalar_tensor_tensor(left, np.multiply, 2.0, np.subtract, b, reverse1=True)

    x, y = floats(), np.roll(floats(), 7)
    np.testing.assert_allclose(of_two(function, x, y), y - 2 * (1.5 - x) * y, rtol=TOLERANCE, atol=TOLERANCE)


def test_two_operations_on_bits_in_one_call() -> None:
    x = np.arange(128, dtype=np.int32)[:, None]
    found = of_two(lambda a, _: nisa.tensor_scalar(a, np.left_shift, 3, op1=np.bitwise_or, operand1=5), x, 0)
    assert np.array_equal(found, x * 8 | 5)


@pytest.mark.parametrize(
    ("operand", "is_reversed", "said"),
    [(1.5, False, "left_shift of a tile and 1.5; the model takes the bits"), (3, True, "of a number by a tile")],
)
def test_shifts_that_are_refused(operand: float, is_reversed: bool, said: str) -> None:
    with pytest.raises(KernelError, match=rf"{said}.*test_functions.py:\d+\)"):
        of_two(lambda a, _: nisa.tensor_scalar(a, np.left_shift, operand, is_reversed), np.ones((4, 4), np.int32), 0)
