"""What is computed at compile time reads nothing outside of its operands, and leaves nothing that it did not write."""

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from tvm_neuron.errors import UnschedulableError
from tvm_neuron.program import Origin
from tvm_neuron.schedule.evaluate import evaluate_blocks
from tvm_neuron.schedule.expr import INTEGER, Apply, Axis, Expr, Index, Load, Num
from tvm_neuron.schedule.graph import Block
from tvm_neuron.schedule.tensor import Tensor

ROWS, COLUMNS = Axis("rows", 12), Axis("columns", 33)
ROW = Index(ROWS)
RNG = np.random.default_rng(0)


def constant(value: np.ndarray) -> Tensor:
    return Tensor("constant", value.shape, value.dtype.name, value=value)


def part(value: np.ndarray, rows: Expr) -> Load:
    return Load(constant(value), (rows, Index(COLUMNS)))


def block(expr: Expr, row: Expr = ROW, rows: Axis = ROWS) -> Block:
    out = Tensor("out", (12, 33), "float32")
    return Block(Origin("join", "Concat"), (rows, COLUMNS), out, (row, Index(COLUMNS)), expr)


def below(limit: int) -> Apply:
    return Apply("is_lt", (ROW, Num(limit)))


def less(rows: int) -> Apply:
    return Apply("subtract", (ROW, Num(rows)))


@pytest.mark.parametrize("select", ["select", f"{INTEGER}select"])
def test_a_branch_that_is_not_taken_may_look_outside(select: str) -> None:
    upper, lower = RNG.standard_normal((7, 33)).astype("f"), RNG.standard_normal((5, 33)).astype("f")
    expr = Apply(select, (below(7), part(upper, ROW), part(lower, less(7))))
    np.testing.assert_array_equal(evaluate_blocks([block(expr)]), np.concatenate([upper, lower]))


def test_selects_in_selects() -> None:
    parts = [RNG.standard_normal((rows, 33)).astype("f") for rows in (3, 4, 5)]
    inner = Apply("select", (below(7), part(parts[1], less(3)), Apply("exp", (part(parts[2], less(7)),))))
    expr = Apply("select", (below(3), part(parts[0], ROW), inner))
    np.testing.assert_allclose(evaluate_blocks([block(expr)]), np.concatenate([*parts[:2], np.exp(parts[2])]))


@pytest.mark.parametrize("rows", [ROW, less(7)])
@pytest.mark.parametrize("is_guarded", [False, True])
def test_what_counts_must_lie_inside(rows: Expr, is_guarded: bool) -> None:
    read: Expr = part(RNG.standard_normal((5, 33)).astype("f"), rows)
    if is_guarded:  # up to row 6, where either way of reading is outside
        read = Apply("select", (below(7), read, Num(0.0)))
    with pytest.raises(UnschedulableError, match=r"'join'.*it reads element (5|-7) of a dimension that has 5"):
        evaluate_blocks([block(read)])


def test_a_whole_tensor_in_parts() -> None:
    values = RNG.standard_normal((12, 33)).astype("f")
    upper, lower = Axis("upper", 7), Axis("lower", 5)
    blocks = [
        block(part(values, Index(upper)), Index(upper), upper),
        block(part(values, Apply("add", (Index(lower), Num(7)))), Apply("add", (Index(lower), Num(7))), lower),
    ]
    blocks[1] = replace(blocks[1], output=blocks[0].output)
    np.testing.assert_array_equal(evaluate_blocks(blocks), values)
    with pytest.raises(AssertionError, match="not written whole"):
        evaluate_blocks(blocks[1:])
    with pytest.raises(AssertionError, match="written outside"):
        evaluate_blocks([block(part(values, ROW), less(1))])


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, np.bool_, np.int8, np.int64])
def test_moves_of_any_dtype(dtype: type) -> None:
    values = RNG.integers(0, 2, (12, 33)).astype(dtype)
    moved = block(Load(constant(values), (Apply("subtract", (Num(11), ROW)), Index(COLUMNS))))
    moved.output.dtype = np.dtype(dtype).name
    found = evaluate_blocks([moved])
    assert found.dtype == values.dtype
    np.testing.assert_array_equal(found.astype(np.float32), values[::-1].astype(np.float32))


@pytest.mark.parametrize("combine", ["max", "min"])
@pytest.mark.parametrize("dtype", ["float32", "int32", "bool"])
def test_the_largest_of_infinities_and_whole_numbers(combine: str, dtype: str) -> None:
    values = RNG.integers(-5, 5, (12, 33)).astype(dtype)
    if dtype == "float32":
        values[:3], values[3:6] = -np.inf, np.inf
    over = Axis("over", 33, is_reduction=True)
    start = -np.inf if combine == "max" else np.inf
    expr = Load(constant(values), (ROW, Index(over)))
    out = Tensor("out", (12,), dtype)
    found = evaluate_blocks([Block(Origin("", ""), (ROWS, over), out, (ROW,), expr, combine, start)])
    np.testing.assert_array_equal(found, getattr(values, combine)(axis=1))
