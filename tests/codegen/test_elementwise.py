"""Elementwise operators on the core against NumPy in float64, on random float32 inputs that it must see exactly."""

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tvm
from tvm import relax, te, tirx

import tvm_neuron
from tvm_neuron import relay
from tvm_neuron.codegen.kernels.affine import as_scaled, fold_scale
from tvm_neuron.codegen.kernels.functions import use_functions
from tvm_neuron.schedule.expr import Apply, Axis, Expr, Index, Load, Num
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.tensor import Tensor

RNG = np.random.default_rng(5)
_EDGES = [0.5, 1.5, -0.5, -2.5, 2.0**24, 0.0, -3.0, 7.0]
WIDE = np.concatenate([RNG.standard_normal(96) * 4, RNG.uniform(-1e7, 1e7, 24), _EDGES])
UNIT = RNG.uniform(-0.98, 0.98, 128)


def on_core(build: Callable[..., relax.Expr], *arrays: np.ndarray) -> np.ndarray:
    """The result of the expression built over inputs of the arrays' shapes and dtypes, all of it on the NeuronCore."""
    names = [f"x{index}" for index in range(len(arrays))]
    variables = [
        relax.Var(name, relax.TensorType(array.shape, str(array.dtype)))
        for name, array in zip(names, arrays, strict=True)
    ]
    builder = relax.BlockBuilder()
    with builder.function("main", variables):
        builder.emit_func_output(builder.emit(build(*variables)))
    library = relay.build(builder.get(), target="neuron")
    assert not tvm_neuron.report(library).placed("cpu"), tvm_neuron.report(library).placement
    executor = relay.graph_executor.GraphModule(library["default"](tvm.cpu()))
    executor.run(**dict(zip(names, arrays, strict=True)))
    return executor.get_output(0).numpy()


# The engines compute in float32: an error of some units of its last place (2^-23) for each function on the way.
FUNCTIONS: list[tuple[str, Any, Any]] = [
    ("floor", np.floor, WIDE), ("ceil", np.ceil, WIDE), ("round", np.rint, WIDE), ("trunc", np.trunc, WIDE),
    ("cos", np.cos, UNIT * 4), ("tan", np.tan, UNIT), ("asin", np.arcsin, UNIT), ("acos", np.arccos, UNIT),
    ("atan", np.arctan, WIDE), ("sinh", np.sinh, UNIT * 5), ("cosh", np.cosh, UNIT * 5), ("asinh", np.arcsinh, WIDE),
    ("acosh", np.arccosh, 1.01 + np.abs(UNIT) * 9), ("atanh", np.arctanh, UNIT), ("isnan", np.isnan, WIDE),
    ("isinf", np.isinf, WIDE), ("isfinite", np.isfinite, WIDE), ("erf", np.vectorize(math.erf), UNIT * 5),
]  # fmt: skip


@pytest.mark.parametrize(("name", "expected", "inputs"), FUNCTIONS, ids=[name for name, _, _ in FUNCTIONS])
def test_functions(name: str, expected: Callable[[np.ndarray], np.ndarray], inputs: np.ndarray) -> None:
    array = inputs.astype(np.float32).reshape(8, -1)
    found = on_core(getattr(relax.op, name), array)
    np.testing.assert_allclose(found, expected(array.astype(np.float64)), rtol=3e-5, atol=2e-6)


@pytest.mark.parametrize("name", ["sin", "tan", "asin", "atan", "sinh", "asinh", "atanh", "tanh"])
def test_functions_keep_their_digits_near_zero(name: str) -> None:
    """Which logarithms and exponentials of numbers near 1 don't: log(1 + 1e-4) has three digits in float32."""
    sizes = np.geomspace(1e-8, 0.95, 64, dtype=np.float32).reshape(8, -1)
    array = np.concatenate([sizes, -sizes])
    wanted = getattr(np, {"asin": "arcsin", "atan": "arctan", "asinh": "arcsinh", "atanh": "arctanh"}.get(name, name))
    np.testing.assert_allclose(on_core(getattr(relax.op, name), array), wanted(array.astype(np.float64)), rtol=5e-7)


WHOLE_RANGE = {
    "sinh": np.sinh, "cosh": np.cosh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "atan": np.arctan,
    "tanh": np.tanh, "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x),
    "floor": np.floor, "ceil": np.ceil, "round": np.rint, "trunc": np.trunc,
}  # fmt: skip


@pytest.mark.parametrize("name", WHOLE_RANGE)
def test_functions_over_all_of_float32(name: str) -> None:
    """What is between must not overflow where the result doesn't, and is NaN where that is."""
    sizes = np.concatenate([10.0 ** RNG.uniform(-30, 38.5, 200), RNG.uniform(80, 90, 60), [0, 1, np.inf, 3.4e38]])
    array = np.concatenate([sizes, -sizes]).astype(np.float32).reshape(8, -1)
    with np.errstate(all="ignore"):
        wanted = WHOLE_RANGE[name](array.astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(on_core(getattr(relax.op, name), array), wanted, rtol=2e-6, atol=1e-37)


def test_the_cosine_is_as_exact_as_the_sine() -> None:
    array = RNG.uniform(-10_000, 10_000, (8, 64)).astype(np.float32)
    np.testing.assert_allclose(on_core(relax.op.cos, array), np.cos(array.astype(np.float64)), atol=5e-7)


def test_log1p_keeps_its_digits_near_zero() -> None:
    def log1p(x: relax.Expr) -> relax.Expr:  # Relax has it in kernels only
        return relax.BlockBuilder.current().call_te(
            lambda data: te.compute(data.shape, lambda *at: tirx.log1p(data[at]), "log1p"), x
        )

    sizes = np.geomspace(1e-8, 0.95, 64, dtype=np.float32).reshape(8, -1)
    array = np.concatenate([sizes, -sizes, sizes * 20])
    np.testing.assert_allclose(on_core(log1p, array), np.log1p(array.astype(np.float64)), rtol=5e-7)


def call(op: str, *args: Expr | float) -> Apply:
    return Apply(op, tuple(Num(arg) if isinstance(arg, float) else arg for arg in args))


def gate(function: str, inside: Expr) -> Expr:
    return call("add", call(function, inside), 1.0)


def tanh_inside(x: Expr, cube: Expr | None = None) -> Expr:
    cubic = call("multiply", cube or call("pow", x, 3.0), 0.044715)
    return call("multiply", call("add", x, cubic), 0.7978845608)


WRITTEN_OUT: dict[str, Callable[[Expr], Expr]] = {
    "gelu": lambda x: call("multiply", call("multiply", x, gate("erf", call("multiply", x, 0.70710678))), 0.5),
    "gelu_tanh": lambda x: call("multiply", call("multiply", x, 0.5), gate("tanh", tanh_inside(x))),
    "silu": lambda x: call("multiply", x, call("sigmoid", x)),
    "mish": lambda x: call("multiply", x, call("tanh", call("log", gate("exp", x)))),
}
NORMAL_CDF = np.vectorize(lambda x: 0.5 * math.erfc(-x / math.sqrt(2)))
ACTIVATIONS: dict[str, tuple[Callable[[relax.Expr], relax.Expr], Callable[[np.ndarray], np.ndarray]]] = {
    "gelu": (relax.op.nn.gelu, lambda x: x * NORMAL_CDF(x)),
    "gelu_tanh": (
        relax.op.nn.gelu_tanh, lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    ),
    "silu": (relax.op.nn.silu, lambda x: x / (1 + np.exp(-x))),
    "mish": (
        lambda x: x * relax.op.tanh(relax.op.log(relax.op.exp(x) + relax.const(1.0))),
        lambda x: x * np.tanh(np.logaddexp(x, 0)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_several_operators_are_one_function(name: str) -> None:
    build, expected = ACTIVATIONS[name]
    array = (RNG.standard_normal((8, 100)) * 3).astype(np.float32)
    np.testing.assert_allclose(on_core(build, array), expected(array.astype(np.float64)), rtol=3e-5, atol=2e-6)
    x = Load(Tensor("x", (), "float32"), ())
    kernel = Kernel((), Tensor("y", (), "float32"), (), Axis("p", 1), (), WRITTEN_OUT[name](x))
    assert use_functions(kernel).expr == Apply(name, (x,))


def test_a_cube_may_be_a_product() -> None:
    x = Load(Tensor("x", (), "float32"), ())
    cube = call("multiply", call("multiply", x, x), x)
    gelu = call("multiply", call("multiply", x, 0.5), gate("tanh", tanh_inside(x, cube)))
    kernel = Kernel((), Tensor("y", (), "float32"), (), Axis("p", 1), (), gelu)
    assert use_functions(kernel).expr == Apply("gelu_tanh", (x,))


def fast_gelu(x: Expr) -> Expr:
    """As BLOOM and Megatron write it, with x in front of the polynomial."""
    square = call("multiply", call("multiply", x, 0.044715), x)
    inside = call("multiply", call("multiply", x, 0.79788456), call("add", square, 1.0))
    return call("multiply", call("multiply", x, 0.5), gate("tanh", inside))


def stable_softplus(x: Expr) -> Expr:
    """As torch writes it, from 20 on as x itself, and inside as ONNX has it."""
    size = call("multiply", call("abs", x), -1.0)
    inner = call("add", call("max", x, 0.0), call("log", gate("exp", size)))
    return call("select", call("is_lt", Num(20), x), x, inner)


WRITTEN_OTHERWISE: dict[str, tuple[str, Callable[[Expr], Expr]]] = {
    "fast GELU": ("gelu_tanh", fast_gelu),
    "GELU with a halved gate": (
        "gelu_tanh", lambda x: call("multiply", x, call("multiply", gate("tanh", tanh_inside(x)), 0.5)),
    ),
    "exact GELU with a halved gate": (
        "gelu", lambda x: call("multiply", x, call("multiply", gate("erf", call("multiply", x, 0.70710678)), 0.5)),
    ),
    "quick GELU": ("gelu_sigmoid", lambda x: call("multiply", x, call("sigmoid", call("multiply", x, 1.702)))),
    "softplus": ("softplus", stable_softplus),
}  # fmt: skip


@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("name", WRITTEN_OTHERWISE)
def test_functions_as_other_models_write_them(name: str, with_bias: bool) -> None:
    """Behind a dense layer's bias, too, which takes the factors that follow."""
    function, write = WRITTEN_OTHERWISE[name]
    channel = Axis("p", 3)
    bias = Tensor("bias", (3,), "float32", value=np.float32([0.5, -1.0, 0.0]))
    x: Expr = Load(Tensor("x", (), "float32"), ())
    x = call("add", x, Load(bias, (Index(channel),))) if with_bias else x
    found = use_functions(fold_scale(Kernel((), Tensor("y", (3,), "float32"), (), channel, (), write(x)))).expr
    assert isinstance(found, Apply)
    assert found.op == function
    assert as_scaled(found.args[0], channel).is_near(as_scaled(x, channel), 1e-6)


def of_relax(name: str) -> Callable[[relax.Expr], relax.Expr]:
    """The same as operators of a model."""
    one, half, cubic, root = (relax.const(np.float32(v)) for v in (1, 0.5, 0.044715, np.sqrt(2 / np.pi)))
    return {
        "fast GELU": lambda x: x * half * (one + relax.op.tanh(x * root * (one + cubic * x * x))),
        "GELU with a halved gate": lambda x: (
            x * (half * (relax.op.tanh(root * (x + cubic * relax.op.power(x, relax.const(np.float32(3))))) + one))
        ),
        "quick GELU": lambda x: x * relax.op.sigmoid(x * relax.const(np.float32(1.702))),
        "softplus": lambda x: (
            relax.op.maximum(x, relax.const(np.float32(0))) + relax.op.log(one + relax.op.exp(-relax.op.abs(x)))
        ),
    }[name]


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("fast GELU", lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * x * (1 + 0.044715 * x * x)))),
        ("GELU with a halved gate", lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))),
        ("quick GELU", lambda x: x / (1 + np.exp(-1.702 * x))),
        ("softplus", lambda x: np.logaddexp(x, 0)),
    ],
)
def test_functions_as_other_models_write_them_beside_float64(
    name: str, wanted: Callable[[np.ndarray], np.ndarray]
) -> None:
    array = np.concatenate([RNG.standard_normal((8, 100)) * 3, RNG.standard_normal((1, 100)) * 40]).astype(np.float32)
    np.testing.assert_allclose(on_core(of_relax(name), array), wanted(array.astype(np.float64)), rtol=3e-5, atol=2e-6)


@pytest.mark.parametrize("name", ["gelu", "gelu_tanh"])
@pytest.mark.parametrize("before", [True, False], ids=["half_first", "half_last"])
def test_gelu_of_a_sum_with_a_bias_is_one_function(before: bool, name: str) -> None:
    """As every dense layer has it: the factor in front of erf or tanh has been taken into the bias."""
    channel = Axis("p", 3)
    bias = Tensor("bias", (3,), "float32", value=np.float32([0.5, -1.0, 0.0]))
    x = call("add", Load(Tensor("x", (), "float32"), ()), Load(bias, (Index(channel),)))
    halved = call("multiply", x, 0.5) if before else x
    gates = {"gelu": gate("erf", call("divide", x, math.sqrt(2))), "gelu_tanh": gate("tanh", tanh_inside(x))}
    product = call("multiply", halved, gates[name])
    kernel = Kernel(
        (), Tensor("y", (3,), "float32"), (), channel, (), product if before else call("multiply", product, 0.5)
    )
    found = use_functions(fold_scale(kernel)).expr
    assert isinstance(found, Apply)
    assert found.op == name
    scaled = as_scaled(found.args[0], channel)
    assert scaled.scale == 1
    np.testing.assert_array_equal(scaled.shift, [0.5, -1.0, 0.0])


@pytest.mark.parametrize("name", ["silu", "mish", "gelu", "gelu_tanh"])
def test_functions_of_what_a_batch_norm_gives_are_one(name: str) -> None:
    """Its factors and shifts are gathered wherever the value is used; all of these are the same constants."""
    channel = Axis("p", 3)
    scale, shift = (Tensor("", (3,), "float32", value=RNG.random(3).astype(np.float32)) for _ in range(2))
    scaled = call("multiply", Load(Tensor("x", (), "float32"), ()), Load(scale, (Index(channel),)))
    x = call("add", scaled, Load(shift, (Index(channel),)))
    kernel = Kernel((), Tensor("y", (3,), "float32"), (), channel, (), WRITTEN_OUT[name](x))
    found = use_functions(fold_scale(kernel)).expr
    assert isinstance(found, Apply)
    assert found.op == name
    parts = as_scaled(found.args[0], channel)
    for mine, theirs in ((parts.scale, scale), (parts.shift, shift)):
        np.testing.assert_allclose(mine, theirs.value, rtol=1e-7)


def test_what_only_looks_like_a_function_stays() -> None:
    x = Load(Tensor("x", (), "float32"), ())
    z = Load(Tensor("z", (), "float32"), ())
    for expr in (
        call("multiply", x, gate("erf", call("multiply", x, 0.70710678))),  # not halved
        call("multiply", call("multiply", x, gate("erf", call("multiply", x, 0.7))), 0.5),
        call("multiply", call("multiply", x, gate("erf", call("multiply", z, 0.70710678))), 0.5),
        call("multiply", x, call("sigmoid", z)),
        call("multiply", x, call("sigmoid", call("multiply", x, 1.7))),
        call("multiply", call("multiply", x, 0.5), call("add", call("tanh", x), 2.0)),
        call("select", call("is_lt", Num(8), x), x, call("softplus", x)),
        call("add", call("max", x, 0.0), call("softplus", call("multiply", call("abs", z), -1.0))),
    ):
        kernel = Kernel((), Tensor("y", (), "float32"), (), Axis("p", 1), (), expr)
        assert use_functions(kernel).expr == expr


def test_numbers_that_are_none_are_replaced() -> None:
    array = np.where(RNG.random((4, 60)) < 0.2, np.nan, RNG.standard_normal((4, 60))).astype(np.float32)
    array[0, :3] = [np.inf, -np.inf, 0.0]
    zero = relax.const(0.0)
    found = on_core(lambda x: relax.op.where(relax.op.isnan(x), zero, x), array)
    np.testing.assert_array_equal(found, np.where(np.isnan(array), 0, array))


def test_rounding_keeps_what_is_no_number() -> None:
    array = np.array([[np.inf, -np.inf, np.nan, 2.5]], np.float32)
    for name in ("floor", "ceil", "round", "trunc"):
        np.testing.assert_array_equal(on_core(getattr(relax.op, name), array), getattr(np, name)(array))


@pytest.mark.parametrize("name", ["less", "less_equal", "greater", "greater_equal", "equal", "not_equal"])
def test_comparisons_see_the_exact_inputs(name: str) -> None:
    left = RNG.standard_normal((4, 40)).astype(np.float32)
    right = np.where(RNG.random((4, 40)) < 0.5, left, np.nextafter(left, np.float32(9)))
    np.testing.assert_array_equal(on_core(getattr(relax.op, name), left, right), getattr(np, name)(left, right))


@pytest.mark.parametrize(
    ("left", "right"),
    [((1, 1, 4, 6), (4, 6)), ((1, 1, 4, 6), (6,)), ((2, 1, 4, 6), (4, 6)), ((1, 1, 200, 6), (200, 6)),
     ((1, 1, 4, 6), (2, 1, 4, 1)), ((1, 1), (3, 4)), ((1, 3, 300), (7, 1, 300)), ((6,), (1,))],
)  # fmt: skip
def test_operands_are_broadcast_whatever_lies_on_the_partitions(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    a, b = (RNG.standard_normal(shape).astype(np.float32) for shape in (left, right))
    np.testing.assert_array_equal(on_core(relax.op.subtract, a, b), a - b)


def test_logic() -> None:
    left, right = RNG.random((2, 3, 40)) < 0.5
    np.testing.assert_array_equal(on_core(relax.op.logical_and, left, right), left & right)
    np.testing.assert_array_equal(on_core(relax.op.logical_or, left, right), left | right)
    np.testing.assert_array_equal(on_core(relax.op.logical_not, left), ~left)
    numbers = RNG.standard_normal((3, 40)).astype(np.float32)
    np.testing.assert_array_equal(on_core(relax.op.where, left, numbers, -numbers), np.where(left, numbers, -numbers))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "maximum", "minimum", "less"])
def test_small_integers_wrap_as_numpys(dtype: str, name: str) -> None:
    if (dtype, name) == ("int16", "multiply"):
        pytest.skip("products of 16 bits leave what float32 holds exactly; they stay on the CPU")
    limits = np.iinfo(dtype)
    left, right = RNG.integers(limits.min, limits.max + 1, (2, 4, 40)).astype(dtype)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(on_core(getattr(relax.op, name), left, right), getattr(np, name)(left, right))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_the_largest_of_small_integers_is_subtracted(dtype: str) -> None:
    limits = np.iinfo(dtype)
    array = RNG.integers(limits.min, limits.max + 1, (4, 200)).astype(dtype)
    array[0] = limits.min  # whose opposite an int8 does not hold
    x = relax.Var("x", relax.TensorType(array.shape, dtype))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        largest = builder.emit(relax.op.max(x, axis=1, keepdims=True))
        builder.emit_func_output(builder.emit(relax.op.subtract(x, largest)))
    library = relay.build(builder.get(), target="neuron")
    assert not tvm_neuron.report(library).placed("cpu")
    executor = relay.graph_executor.GraphModule(library["default"](tvm.cpu()))
    executor.run(x=array)
    np.testing.assert_array_equal(executor.get_output(0).numpy(), array - array.max(axis=1, keepdims=True))


def test_wide_integers_are_moved_bit_by_bit() -> None:
    for dtype in ("int32", "int64"):
        array = RNG.integers(-(2**31), 2**31, (20, 7)).astype(dtype)
        np.testing.assert_array_equal(on_core(relax.op.permute_dims, array), array.T)


def test_wide_integers_are_not_added_on_the_core() -> None:
    x = relax.Var("x", relax.TensorType((4,), "int32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.op.add(x, x)))
    (row,) = tvm_neuron.report(relay.build(builder.get(), target="neuron")).placed("cpu")
    assert "'add' of integers: engines compute in float32, exact for whole numbers up to 2^24" in row.reason


@pytest.mark.parametrize("target", ["int8", "uint8", "int16", "int32", "bool"])
def test_casts_drop_the_fraction(target: str) -> None:
    limits = np.iinfo("int8" if target == "bool" else target)
    array = RNG.uniform(limits.min, limits.max - 100, (4, 50)).astype(np.float32)
    array[0, :4] = [0.0, 0.9, 1.999, 0.0] if limits.min == 0 else [0.0, -0.9, -1.999, 0.0]
    found = on_core(lambda x: relax.op.astype(x, target), array)
    np.testing.assert_array_equal(found, array.astype(target))


@pytest.mark.parametrize("source", ["bool", "int8", "uint8", "int16", "int32"])
@pytest.mark.parametrize("target", ["float32", "float16", "bfloat16"])
def test_casts_of_integers_round_to_even(source: str, target: str) -> None:
    dtype = np.dtype(ml_dtypes.bfloat16) if target == "bfloat16" else np.dtype(target)
    high = {"bool": 2, "int8": 127, "uint8": 255, "int16": 2**15, "int32": 65_504 if target == "float16" else 2**31}
    array = RNG.integers(0, high[source], (4, 50)).astype(source)
    found = on_core(lambda x: relax.op.astype(x, target), array)
    np.testing.assert_array_equal(found.astype(np.float32), array.astype(np.float32).astype(dtype).astype(np.float32))


def test_a_number_without_dimensions() -> None:
    array = RNG.standard_normal((4, 8)).astype(np.float32)
    found = on_core(lambda x: relax.op.sum(x), array)
    assert found.shape == ()
    np.testing.assert_allclose(found, array.sum(), atol=2**-9 * np.abs(array).sum())  # summands are multiplied as bf16
