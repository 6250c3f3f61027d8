"""Every form of expression on one tile, through instructions and the hardware model, against NumPy."""

from collections.abc import Callable

import numpy as np
import pytest

from tvm_neuron.codegen.emit.vector import tile_elems
from tvm_neuron.codegen.function import compile_graph
from tvm_neuron.codegen.options import BuildOptions
from tvm_neuron.hw import load_device
from tvm_neuron.program import Origin
from tvm_neuron.schedule.expr import Apply, Axis, Expr, Index, Load, Num
from tvm_neuron.schedule.graph import Block, Graph
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.linear import linear
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.sim import Machine

RNG = np.random.default_rng(0)
SHAPE = (2, 20, 3, 5)
A, B = (RNG.uniform(0.5, 2.0, SHAPE).astype(np.float32) for _ in range(2))
V = RNG.uniform(0.5, 2.0, SHAPE[1]).astype(np.float32)
COLUMN = V.reshape(1, -1, 1, 1)
Form = tuple[Callable[[Expr, Expr, Expr], Expr], Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]]


def op(name: str) -> Callable[..., Expr]:
    return lambda *args: Apply(name, args)


add, sub, mul, div = op("add"), op("subtract"), op("multiply"), op("divide")
half, two = Num(0.5), Num(2.0)
FORMS: dict[str, Form] = {
    "a number": (lambda a, b, v: Num(1.5), lambda a, b, v: np.full(SHAPE, 1.5)),
    "a copy": (lambda a, b, v: a, lambda a, b, v: a),
    "a scale and a shift": (lambda a, b, v: add(mul(a, two), half), lambda a, b, v: 2 * a + 0.5),
    "a vector's scale and shift": (lambda a, b, v: add(mul(a, v), v), lambda a, b, v: a * v + v),
    "a number minus a tile": (lambda a, b, v: sub(two, a), lambda a, b, v: 2 - a),
    "a number over a tile": (lambda a, b, v: div(two, a), lambda a, b, v: 2 / a),
    "a vector minus a tile": (lambda a, b, v: sub(v, a), lambda a, b, v: v - a),
    "a tile over a vector": (lambda a, b, v: div(a, v), lambda a, b, v: a / v),
    "two tiles": (lambda a, b, v: sub(a, b), lambda a, b, v: a - b),
    "two tiles divided": (lambda a, b, v: div(a, b), lambda a, b, v: a / b),
    "a tile twice": (lambda a, b, v: mul(a, a), lambda a, b, v: a * a),
    "a scaled tile plus another": (lambda a, b, v: add(mul(a, half), b), lambda a, b, v: a / 2 + b),
    "a tile plus a scaled one": (lambda a, b, v: add(a, mul(b, v)), lambda a, b, v: a + b * v),
    "a tile minus a scaled one": (lambda a, b, v: sub(a, mul(b, two)), lambda a, b, v: a - 2 * b),
    "two scaled tiles": (lambda a, b, v: add(mul(a, v), mul(b, half)), lambda a, b, v: a * v + b / 2),
    "relu": (lambda a, b, v: op("max")(sub(a, b), Num(0.0)), lambda a, b, v: np.maximum(a - b, 0)),
    "a clip": (lambda a, b, v: op("min")(op("max")(a, Num(0.75)), Num(1.25)), lambda a, b, v: np.clip(a, 0.75, 1.25)),
    "a clip between vectors": (
        lambda a, b, v: op("min")(op("max")(a, v), add(v, half)), lambda a, b, v: np.clip(a, v, v + 0.5),
    ),
    "a power": (lambda a, b, v: op("pow")(a, Num(0.75)), lambda a, b, v: a**0.75),
    "the largest of two": (lambda a, b, v: op("max")(a, b), lambda a, b, v: np.maximum(a, b)),
    "functions": (lambda a, b, v: op("exp")(op("tanh")(sub(a, v))), lambda a, b, v: np.exp(np.tanh(a - v))),
    "a deep one": (
        lambda a, b, v: div(add(mul(a, b), op("sqrt")(add(a, half))), add(mul(b, b), add(two, op("exp")(b)))),
        lambda a, b, v: (a * b + np.sqrt(a + 0.5)) / (b * b + (2 + np.exp(b))),
    ),
}  # fmt: skip


def run(expr: Callable[[Expr, Expr, Expr], Expr], chip: str, mode: str) -> np.ndarray:
    a, b, y = (Tensor(name, SHAPE, "float32", kind) for name, kind in (("a", "input"), ("b", "input"), ("y", "output")))
    v = Tensor("v", V.shape, "float32", value=V)
    axes = tuple(Axis(name, extent) for name, extent in zip("nchw", SHAPE, strict=True))
    index: tuple[Expr, ...] = tuple(map(Index, axes))
    block = Block(Origin("form", "Form"), axes, y, index, expr(Load(a, index), Load(b, index), Load(v, (index[1],))))
    made = compile_graph(Graph([a, b], [y], [block]), "form", load_device(chip), BuildOptions())
    return Machine(made.program, made.device, made.weights).run({"a": A, "b": B}, mode)["y"]


@pytest.mark.parametrize("mode", ["nest", "strict"])
@pytest.mark.parametrize("chip", ["inf1", "inf2"])
@pytest.mark.parametrize("form", FORMS)
def test_against_numpy(form: str, chip: str, mode: str) -> None:
    expr, numpy = FORMS[form]
    wanted = numpy(A.astype(np.float64), B.astype(np.float64), COLUMN.astype(np.float64))
    # Tiles stay in float32 here: at most ten operations of half a unit of 2**-23 each, which is 6e-7.
    np.testing.assert_allclose(run(expr, chip, mode), wanted, rtol=2e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("chip", "largest"), [("inf1", 64), ("inf2", 128)])
def test_many_steps_are_taken_on_smaller_tiles(chip: str, largest: int) -> None:
    """Each of them keeps a value: together more than two fifths of SBUF hold for 512 elements."""
    shape, steps, device = (3, 5000), 20, load_device(chip)
    x, y = (Tensor(name, shape, "float32", kind) for name, kind in (("x", "input"), ("y", "output")))
    axes = (Axis("p", 3), Axis("w", 5000))
    index: tuple[Expr, ...] = tuple(map(Index, axes))
    expr: Expr = mul(Load(x, index), Load(x, index))
    for step in range(steps):
        expr = add(op("exp")(mul(Load(x, index), Num(step / steps))), op("sqrt")(add(expr, half)))
    block = Block(Origin("steps", "Form"), axes, y, index, expr)
    kernel = Kernel((), y, tuple(map(linear, index)), axes[0], axes[1:], expr)
    assert tile_elems(kernel, device) == largest
    made = compile_graph(Graph([x], [y], [block]), "steps", device, BuildOptions())
    value = RNG.standard_normal(shape).astype(np.float32)
    wanted = value.astype(np.float64) ** 2
    for step in range(steps):
        wanted = np.exp(value.astype(np.float64) * (step / steps)) + np.sqrt(wanted + 0.5)
    for mode in ("nest", "strict"):
        found = Machine(made.program, made.device, made.weights).run({"x": value}, mode)["y"]
        np.testing.assert_allclose(found, wanted, rtol=2e-5)  # some units of 2^-23 in each of 20 steps
