"""Random graphs, coloured at random: whatever goes where, the parts have an order and compute what the whole does."""

from collections.abc import Callable
from typing import Any

import numpy as np
import tvm
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tvm import relax

from tvm_neuron.frontend import normalize
from tvm_neuron.frontend.origin import bindings_of, origin_of
from tvm_neuron.partition import Island, Match, Partition, Refusal, Verdict, partition
from tvm_neuron.partition.constraints import IsConstant
from tvm_neuron.partition.spans import SpansOf

SHAPE = (2, 4)
X = np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)
KINDS = ("relu", "negative", "add", "multiply", "split", "reshape")

_COMPUTE: dict[str, Callable[..., Any]] = {
    "relax.nn.relu": lambda _call, x: np.maximum(x, 0),
    "relax.negative": lambda _call, x: -x,
    "relax.add": lambda _call, x, y: x + y,
    "relax.multiply": lambda _call, x, y: x * y,
    "relax.split": lambda call, x: tuple(np.split(x, int(call.attrs.indices_or_sections), int(call.attrs.axis))),
    "relax.concat": lambda call, parts: np.concatenate(parts, int(call.attrs.axis)),
    "relax.reshape": lambda call, x, _shape: x.reshape([int(dim) for dim in call.ty.shape]),
}

step = st.tuples(st.sampled_from(KINDS), st.integers(0, 1 << 16), st.integers(0, 1 << 16))


def build(steps: list[tuple[str, int, int]], returned: list[int]) -> tvm.IRModule:
    """Each step reads any earlier values; the results at `returned` and the last one are returned."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(SHAPE, "float32"))
    weight = relax.const(np.arange(8, dtype=np.float32).reshape(SHAPE))
    with builder.function("main", [x]):
        with builder.dataflow():
            values: list[relax.Expr] = [x, weight]
            for kind, first, second in steps:
                a, b = values[first % len(values)], values[second % len(values)]
                values.append(builder.emit(_call(builder, kind, a, b)))
            chosen = dict.fromkeys([values[2 + i % (len(values) - 2)] for i in returned] + [values[-1]])
            result = builder.emit_output(relax.Tuple(list(chosen)))
        builder.emit_func_output(result)
    return builder.get()


def _call(builder: relax.BlockBuilder, kind: str, a: relax.Expr, b: relax.Expr) -> relax.Expr:
    match kind:
        case "relu":
            return relax.op.nn.relu(a)
        case "negative":
            return relax.op.negative(a)
        case "add":
            return relax.op.add(a, b)
        case "multiply":
            return relax.op.multiply(a, b)
        case "split":
            parts = builder.emit(relax.op.split(a, 2, 1))
            return relax.op.concat([relax.TupleGetItem(parts, 1), relax.TupleGetItem(parts, 0)], 1)
    return relax.op.reshape(builder.emit(relax.op.reshape(a, (8,))), SHAPE)


def evaluate(mod: tvm.IRModule, name: str, arguments: list[Any]) -> Any:
    """The function's result, binding by binding, with NumPy: fails on a value that is read before it is made."""
    func = mod[name]
    values: dict[relax.Var, Any] = dict(zip(func.params, arguments, strict=True))

    def value(expr: relax.Expr) -> Any:
        if isinstance(expr, relax.Var):
            return values[expr]
        if isinstance(expr, relax.Tuple):
            return tuple(map(value, expr.fields))
        if isinstance(expr, relax.TupleGetItem):
            return value(expr.tuple_value)[expr.index]
        if isinstance(expr, tvm.ir.GenericConst):
            return expr.value.numpy()
        if isinstance(expr, relax.ShapeExpr):
            return None
        operands = [value(arg) for arg in expr.args]
        if isinstance(expr.op, tvm.ir.GlobalVar):
            return evaluate(mod, expr.op.name_hint, operands)
        return _COMPUTE[expr.op.name](expr, *operands)

    for binding in bindings_of(func):
        values[binding.var] = value(binding.value)
    return value(func.body.body)


def flat(result: Any) -> list[NDArray]:
    return [array for part in result for array in flat(part)] if isinstance(result, tuple) else [result]


def check(mod: tvm.IRModule, part: Partition) -> None:
    relax.analysis.well_formed(part.mod)
    wanted = flat(evaluate(mod, "main", [X]))
    for actual, expected in zip(flat(evaluate(part.mod, "main", [X])), wanted, strict=True):
        np.testing.assert_array_equal(actual, expected)


@settings(max_examples=60, deadline=None)
@given(st.lists(step, min_size=1, max_size=12), st.lists(st.integers(0, 99), max_size=2), st.integers(0, (1 << 16) - 1))
def test_every_colouring_gives_an_order_and_equal_results(
    steps: list[tuple[str, int, int]], returned: list[int], colours: int
) -> None:
    mod = normalize(build(steps, returned), {})
    order = [origin_of(binding.value).name for binding in bindings_of(mod["main"]) if origin_of(binding.value)]

    def can_schedule(call: relax.Call, _is_constant: IsConstant, _spans_of: SpansOf) -> Verdict:
        is_here = colours >> order.index(origin_of(call).name) % 16 & 1
        return Match() if is_here else Refusal("so the test says")

    check(mod, partition(mod, can_schedule))
    seen = []

    def weigh(_func: relax.Function, island: Island) -> str:
        seen.append(island)
        return "too small" if island.operators % 2 else ""

    part = partition(mod, can_schedule, weigh)
    check(mod, part)
    assert all(island.carried_bytes >= 32 and island.operators for island in seen)
    moved = [row for row in part.placements if row.reason == "too small"]
    assert all(row.where == "cpu" for row in moved)
