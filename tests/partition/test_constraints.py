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
        (relax.op.cumsum(var((4,)), 0), "A cumulative sum runs over at most 2048 floats, unlike cumsum here"),
        (
            relax.op.take(var((4, 3)), var((2,), "int64"), axis=0),
            "Positions are known at compile time: NeuronCore-v1 has no computed addresses, programs for v2 use none "
            "(take)",
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
            "No engine has 64-bit floats or unsigned integers of more than 8 bits; add has float64",
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
    indices = var((2,), "int64")
    take = typed(relax.op.take(var((4, 3)), indices, axis=0))
    assert not check(take, nothing, CONSTRAINTS)
    assert check(take, lambda expr: expr.same_as(indices), CONSTRAINTS)


def test_every_constraint_is_a_sentence_for_the_manual() -> None:
    for constraint in CONSTRAINTS:
        assert constraint.__doc__
        assert constraint.__doc__.endswith(".")
