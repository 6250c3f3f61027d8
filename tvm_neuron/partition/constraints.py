"""What an operator must be to run on a NeuronCore: one function per constraint.

The docstring of a constraint is the manual's sentence and the template of the reason given when it is violated.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

import tvm
from tvm import relax

from tvm_neuron.frontend.decompose.shapes import static_shape
from tvm_neuron.frontend.origin import op_name
from tvm_neuron.partition.spans import Spans

SUPPORTED_DTYPES = ("float32", "float16", "bfloat16", "bool", "int8", "uint8", "int16", "int32", "int64")
"""Dtypes of tensors that a NeuronCore program reads and writes at run time."""

DATA_DEPENDENT = {
    "nonzero",
    "unique",
    "dynamic_strided_slice",
    "tensor_to_shape",
    "multinomial_from_uniform",
    "vision.non_max_suppression",
    "vision.all_class_non_max_suppression",
    "vision.get_valid_counts",
}


_PLACED = {"scatter_elements", "scatter_nd", "index_put", "reverse_sequence"}
"""Operators whose second operand says where something is written."""


@dataclass(frozen=True)
class Match:
    """A constraint holds. `spans` are what a scheduled call's results lie in, see `partition.spans`."""

    spans: Spans = ()

    def __bool__(self) -> bool:
        return True


@dataclass(frozen=True)
class Refusal:
    """A constraint is violated, and why. Falsy."""

    reason: str

    def __bool__(self) -> bool:
        return False


Verdict = Match | Refusal
IsConstant = Callable[[relax.Expr], bool]
Constraint = Callable[[relax.Call, IsConstant], Verdict]
"""A constraint looks at one call, and may ask which of its operands are known at compile time."""


def is_operator(call: relax.Call, _is_constant: IsConstant) -> Verdict:
    """It is an operator of Relax, not a function of the model's own ({op})."""
    if isinstance(call.op, tvm.ir.Op) and not op_name(call).startswith(("call_", "vm.", "memory.", "builtin.")):
        return Match()
    return _refuse(is_operator, call)


def has_known_result_shape(call: relax.Call, _is_constant: IsConstant) -> Verdict:
    """The size of its result does not depend on the data, as that of {op} does."""
    return _refuse(has_known_result_shape, call) if op_name(call) in DATA_DEPENDENT else Match()


def has_static_targets(call: relax.Call, is_constant: IsConstant) -> Verdict:
    """Where it writes is known at compile time: no NeuronCore-v1 computes addresses, v2 only those it reads ({op})."""
    is_known = op_name(call) not in _PLACED or all(map(is_constant, call.args[1:2]))
    return Match() if is_known else _refuse(has_static_targets, call)


def is_ranking_in_rounds(call: relax.Call, _is_constant: IsConstant) -> Verdict:
    """TopK and sorting take a round for each element, at most 16 of at most 65536 elements of floats; {op} {found}."""
    if op_name(call) not in ("topk", "sort", "argsort") or not call.args:
        return Match()
    elems = "an unknown number of" if (shape := static_shape(call.args[0])) is None else str(prod(shape))
    count = call.attrs.k if op_name(call) == "topk" else "all"
    return _refuse(is_ranking_in_rounds, call, found=f"takes {count} of {elems} elements")


def is_exact_sum(call: relax.Call, _is_constant: IsConstant) -> Verdict:
    """A cumulative sum is of 65536 floats along its axis, or 8-bit integers in all, at most, unlike {op} here."""
    return _refuse(is_exact_sum, call) if op_name(call) == "cumsum" and call.args else Match()


def is_lowerable(call: relax.Call, _is_constant: IsConstant) -> Verdict:
    """TVM has a kernel in TIR for it, unlike for {op}."""
    return Match() if call.op.get_attr("FLegalize") is not None else _refuse(is_lowerable, call)


def has_static_shape(call: relax.Call, _is_constant: IsConstant) -> Verdict:
    """All its shapes are known at compile time; {op} has {found}."""
    for arg in call.args:
        if isinstance(arg.ty, relax.ShapeType) and not _is_known_shape(arg):
            return _refuse(has_static_shape, call, found=str(arg))
    for tensor in _tensors([call, *call.args]):
        if not _is_static(tensor):
            return _refuse(has_static_shape, call, found=str(tensor.shape or "an unknown shape"))
    return Match()


def has_supported_dtype(call: relax.Call, is_constant: IsConstant) -> Verdict:
    """Operators there have no floats of 64 or 8 bits and no unsigned integers of more than 8; {op} has {found}."""
    for tensor in _tensors([call, *(arg for arg in call.args if not is_constant(arg))]):
        if str(tensor.dtype) not in SUPPORTED_DTYPES:
            return _refuse(has_supported_dtype, call, found=str(tensor.dtype))
    return Match()


FOLDABLE: tuple[Constraint, ...] = (is_operator, has_known_result_shape, is_lowerable, has_static_shape)
"""What an operator on constants must be to be computed at compile time."""

CONSTRAINTS: tuple[Constraint, ...] = (
    has_static_targets,
    is_ranking_in_rounds,
    is_exact_sum,
    *FOLDABLE,
    has_supported_dtype,
)
"""What any other operator must be to run on a NeuronCore."""

_PLACEHOLDER_CLAUSE = re.compile(r"[,;]? \(?[^,;(]*\{.*", re.DOTALL)


def general_constraints() -> tuple[str, ...]:
    """What every operator must keep to run on a NeuronCore: one sentence each."""
    return tuple(_PLACEHOLDER_CLAUSE.sub("", constraint.__doc__ or "").rstrip(".") for constraint in CONSTRAINTS)


def check(call: relax.Call, is_constant: IsConstant, constraints: Sequence[Constraint]) -> Verdict:
    """The first refusal of `constraints`, in their order, or a match."""
    for constraint in constraints:
        verdict = constraint(call, is_constant)
        if not verdict:
            return verdict
    return Match()


def _refuse(constraint: Constraint, call: relax.Call, found: str = "") -> Refusal:
    return Refusal((constraint.__doc__ or "").format(op=op_name(call), found=found).rstrip("."))


def _tensors(exprs: Sequence[relax.Expr]) -> Iterator[relax.TensorType]:
    """The tensor types in the types of `exprs`, tuples opened."""
    types = [expr.ty for expr in exprs]
    while types:
        current = types.pop()
        if isinstance(current, relax.TensorType):
            yield current
        elif isinstance(current, relax.TupleType):
            types.extend(current.fields)


def _is_known_shape(expr: relax.Expr) -> bool:
    return isinstance(expr, relax.ShapeExpr) and all(isinstance(dim, tvm.tirx.IntImm) for dim in expr.values)


def _is_static(tensor: relax.TensorType) -> bool:
    if not isinstance(tensor.shape, relax.ShapeExpr):
        return False
    return all(isinstance(dim, tvm.tirx.IntImm | int) for dim in tensor.shape)
