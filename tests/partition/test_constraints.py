"""Each constraint refuses what it names, with its own docstring as the reason."""

import pytest
import tvm
from tvm import relax

from tvm_neuron.partition import Match, Refusal
from tvm_neuron.partition.constraints import CONSTRAINTS, check


def var(shape: tuple[int, ...], dtype: str = "float32") -> relax.Var:
    return relax.Var("x", relax.TensorType(shape, dtype))


def typed(call: relax.Call) -> relax.Call:
    return relax.BlockBuilder().normalize(call)


def nothing(_expr: relax.Expr) -> bool:
    return False


def test_a_float_operator_of_static_shape_matches() -> None:
    assert check(typed(relax.op.nn.relu(var((2, 3)))), nothing, CONSTRAINTS) == Match()


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (relax.op.nonzero(var((4,))), "The size of its result does not depend on the data, as that of nonzero does"),
        (relax.op.cumprod(var((4,)), 0), "TVM has a kernel in TIR for it, unlike for cumprod"),
        (
            relax.op.cumsum(var((4,)), 0),
            "A cumulative sum is of 65536 floats along its axis, or 8-bit integers in all, at most, unlike cumsum here",
        ),
        (
            relax.op.scatter_elements(var((4, 3)), var((2, 3), "int64"), var((2, 3)), axis=0),
            "Where it writes is known at compile time: no NeuronCore-v1 computes addresses, v2 only those it reads "
            "(scatter_elements)",
        ),
        (
            relax.op.sort(var((40,))),
            "TopK and sorting take a round for each element, at most 16 of at most 65536 elements of floats; sort "
            "takes all of 40 elements",
        ),
        (
            relax.op.nn.relu(var((tvm.tirx.Var("n", "int64"), 3))),
            "All its shapes are known at compile time; nn.relu has R.shape([n, 3])",
        ),
        (
            relax.op.add(var((4,), "float64"), var((4,), "float64")),
            "Operators there have no floats of 64 or 8 bits and no unsigned integers of more than 8; add has float64",
        ),
        (
            relax.call_pure_packed("custom", var((4,)), ty_args=relax.TensorType((4,), "float32")),
            "It is an operator of Relax, not a function of the model's own (call_pure_packed)",
        ),
    ],
)
def test_refusals(call: relax.Call, reason: str) -> None:
    verdict = check(typed(call), nothing, CONSTRAINTS)
    assert verdict == Refusal(reason)
    assert not verdict


def test_operands_known_at_compile_time_may_have_any_dtype() -> None:
    table = var((4, 3), "float64")
    cast = typed(relax.op.astype(table, "float32"))
    assert not check(cast, nothing, CONSTRAINTS)
    assert check(cast, lambda expr: expr.same_as(table), CONSTRAINTS)


def test_where_a_scatter_writes_must_be_known() -> None:
    indices = var((2, 3), "int64")
    scatter = typed(relax.op.scatter_elements(var((4, 3)), indices, var((2, 3)), axis=0))
    assert not check(scatter, nothing, CONSTRAINTS)
    assert check(scatter, lambda expr: expr.same_as(indices), CONSTRAINTS)


def test_every_constraint_is_a_sentence_for_the_manual() -> None:
    for constraint in CONSTRAINTS:
        assert constraint.__doc__
        assert constraint.__doc__.endswith(".")
