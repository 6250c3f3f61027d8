"""Leaky ReLU as a maximum: numbers against NumPy and float64 networks; what only looks like one stays a choice."""

import numpy as np
import pytest
from tvm import relax

from tests.codegen.test_elementwise import call, on_core
from tests.codegen.test_fold_rows import CHANNELS, Convolutions, check
from tests.codegen.test_sum_biases import instructions
from tests.stages.networks import compile_model
from tvm_neuron.codegen.kernels.affine import fold_scale
from tvm_neuron.codegen.kernels.leaky_relu import use_maxima
from tvm_neuron.isa import ScalarTensorTensor, Select
from tvm_neuron.schedule.expr import Apply, Axis, Expr, Index, Load, Num
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.tensor import Tensor

RNG = np.random.default_rng(23)
CHANNEL = Axis("p", 4)
X, Z = (Load(Tensor(name, (), "float32"), ()) for name in "xz")


def vector(*values: float) -> Load:
    return Load(Tensor("vector", (len(values),), "float32", value=np.float32(values)), (Index(CHANNEL),))


def chosen(x: Expr, other: Expr, test: str = "is_lt") -> Expr:
    """As models have it: x where 0 is less than it."""
    return call("select", call(test, 0.0, x), x, other)


def after(expr: Expr, dtype: str = "float32") -> Expr:
    """What becomes of it."""
    return use_maxima(fold_scale(Kernel((), Tensor("y", (4,), dtype), (), CHANNEL, (), expr))).expr


@pytest.mark.parametrize("slope", [0.1, 0.01, 1.0, -0.5, 1.5])
def test_every_slope(slope: float) -> None:
    """To the last bit, for numbers that are none as well; a slope above 1 leaves a choice."""
    array = (RNG.standard_normal((8, 100)) * 3).astype(np.float32)
    array[0, :4] = [np.inf, -np.inf, np.nan, 0.0]
    found = on_core(lambda x: relax.op.nn.leakyrelu(x, slope), array)
    np.testing.assert_array_equal(found, np.where(array > 0, array, array * np.float32(slope)))


def test_slopes_of_channels() -> None:
    array = RNG.standard_normal((2, 6, 5, 7)).astype(np.float32)
    slopes = np.float32([0.1, 0.25, 1.0, -2.0, 0.3, 0.9])
    found = on_core(lambda x: relax.op.nn.prelu(x, relax.const(slopes), axis=1), array)
    np.testing.assert_array_equal(found, np.where(array > 0, array, array * slopes.reshape(1, -1, 1, 1)))


@pytest.mark.parametrize("test", ["is_lt", "is_le"])
def test_a_choice_becomes_a_maximum(test: str) -> None:
    wanted = call("max", call("multiply", X, 0.25), X)
    assert after(chosen(X, call("multiply", X, 0.25), test)) == wanted
    turned = {"is_lt": "is_gt", "is_le": "is_ge"}[test]
    assert after(call("select", call(turned, X, 0.0), X, call("multiply", X, 0.25))) == wanted


def test_what_a_batch_norm_gives_is_computed_once() -> None:
    """One of its channels is multiplied by 0, and of one nothing is left at all."""
    x = call("add", call("multiply", X, vector(0.3, 0.7, 0.0, 0.0)), vector(0.1, -0.2, 0.5, 0.0))
    found = after(chosen(x, call("multiply", x, 0.1)))
    assert isinstance(found, Apply)
    assert isinstance(found.args[0], Apply)
    assert (found.op, found.args[0].op, found.args[0].args[0]) == ("max", "multiply", found.args[1])
    slope = found.args[0].args[1]
    assert isinstance(slope, Num)
    assert slope.value == pytest.approx(0.1, rel=1e-7)


def test_one_slope_for_each_channel() -> None:
    found = after(chosen(X, call("multiply", X, vector(0.5, 0.25, -1.0, 1.0))))
    assert isinstance(found, Apply)
    assert isinstance(found.args[0], Apply)
    slopes = found.args[0].args[1]
    assert isinstance(slopes, Load)
    np.testing.assert_array_equal(slopes.tensor.value, [0.5, 0.25, -1.0, 1.0])


@pytest.mark.parametrize(
    "expr",
    [
        chosen(X, call("multiply", X, 1.5)),
        chosen(X, call("multiply", X, vector(0.5, 0.5, 1.25, 0.5))),
        chosen(X, call("multiply", X, vector(0.5, 0.0, 0.5, 0.5))),
        chosen(X, Num(0.0)),
        chosen(X, call("multiply", Z, 0.1)),
        chosen(X, call("add", call("multiply", X, 0.1), 1.0)),
        call("select", call("is_lt", 0.0, Z), X, call("multiply", X, 0.1)),
        call("select", call("is_lt", 1.0, X), X, call("multiply", X, 0.1)),
        call("select", call("is_lt", X, 0.0), X, call("multiply", X, 0.1)),
        call("select", call("is_lt", 0.0, X), call("multiply", X, 0.1), X),
    ],
)
def test_others_stay(expr: Expr) -> None:
    found = after(expr)
    assert isinstance(found, Apply)
    assert found.op == "select"


def test_integers_stay() -> None:
    assert after(chosen(X, call("multiply", X, -1.0)), "int32") == chosen(X, call("multiply", X, -1.0))


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
def test_the_way_out_of_a_convolution(chip: str) -> None:
    net = Convolutions()
    net.weights["slope"] = RNG.uniform(0.1, 0.9, (72, 1, 1)).astype(np.float32)
    x = net.op("LeakyRelu", net.conv("x", CHANNELS, 72), alpha=0.1)
    model = net.model(net.op("PRelu", net.conv(x, 72, 72), "slope"))
    check(model, chip)
    kinds = [type(i) for i in instructions(compile_model(model, f"neuron/{chip}").program.body)]
    assert ScalarTensorTensor in kinds
    assert Select not in kinds
