"""Decides for each call of a function where it runs, and why; the passes that follow only carry it out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import tvm
from tvm import relax

from tvm_neuron.frontend.by_hand import kernel_name
from tvm_neuron.frontend.drawing import is_draw
from tvm_neuron.frontend.loops import is_loop, operators_in, reason_of
from tvm_neuron.frontend.origin import Origin, bindings_of, op_name, origin_of
from tvm_neuron.partition.constraints import (
    CONSTRAINTS,
    DATA_DEPENDENT,
    FOLDABLE,
    IsConstant,
    Match,
    Refusal,
    Verdict,
    check,
)
from tvm_neuron.partition.spans import Span, Spans, SpansOf, span_of_array
from tvm_neuron.runtime.tensors import as_numpy

CanSchedule = Callable[[relax.Call, IsConstant, SpansOf], Verdict]
"""Asks the code generator whether it can schedule the kernel of a call, some of whose operands are constants, and some
whole numbers of a known span."""


class Where(StrEnum):
    """Where an operator runs."""

    NEURONCORE = "neuroncore"
    CPU = "cpu"
    COMPILE_TIME = "compile time"


@dataclass(frozen=True)
class Decision:
    """One call's place and the reason for it (empty on the NeuronCore)."""

    origin: Origin
    op: str
    where: Where
    reason: str = ""


@dataclass
class Plan:
    """The decision for each bound variable that holds a call; `constants` are the variables known at compile time.

    `indices` are those among them that hold whole numbers, on whose values it depends how an operator is scheduled.
    `inside` are the decisions for operators in the bodies of loops. `spans` are those of the tensors in variables.
    """

    decisions: dict[relax.Var, Decision] = field(default_factory=dict)
    constants: set[relax.Var] = field(default_factory=set)
    indices: dict[relax.Var, tvm.ir.GenericConst] = field(default_factory=dict)
    inside: list[Decision] = field(default_factory=list)
    spans: dict[relax.Var, Spans] = field(default_factory=dict)

    def is_constant(self, expr: relax.Expr) -> bool:
        """Whether `expr` is known at compile time: a constant, a shape, or computed from those."""
        if isinstance(expr, relax.Var):
            return expr in self.constants
        if isinstance(expr, relax.Tuple):
            return all(self.is_constant(value) for value in expr.fields)
        if isinstance(expr, relax.TupleGetItem):
            return self.is_constant(expr.tuple_value)
        if isinstance(expr, relax.ShapeExpr):  # a size may be one that only the data tells, as after NonZero
            return all(isinstance(dim, tvm.tirx.IntImm) for dim in expr)
        return not isinstance(expr, relax.Call | relax.If | relax.Function | tvm.ir.GlobalVar)

    def spans_of(self, expr: relax.Expr) -> Spans:
        """What is known of the whole numbers that `expr` holds."""
        if isinstance(expr, tvm.ir.GenericConst):
            return (span_of_array(as_numpy(expr.value)),)
        if isinstance(expr, relax.Tuple):
            return tuple(map(self.span_of, expr.fields))
        if isinstance(expr, relax.TupleGetItem):
            return self.spans_of(expr.tuple_value)[expr.index :][:1]
        return self.spans.get(expr, ()) if isinstance(expr, relax.Var) else ()

    def span_of(self, expr: relax.Expr) -> Span | None:
        """`spans_of` a single tensor."""
        return next(iter(self.spans_of(expr)), None)

    def with_indices(self, call: relax.Call) -> relax.Call:
        """The call with the whole numbers that it takes from constants (indices, say) in their place."""
        args = [self.indices.get(arg, arg) if isinstance(arg, relax.Var) else arg for arg in call.args]
        return relax.Call(call.op, args, call.attrs, call.ty_args, call.span, ret_ty=call.ty)

    def is_on_neuroncore(self, var: relax.Var) -> bool:
        """Whether the call bound to `var` was placed on the NeuronCore."""
        return var in self.decisions and self.decisions[var].where is Where.NEURONCORE


def make_plan(
    func: relax.Function, constants: Mapping[relax.Var, tvm.ir.GenericConst], can_schedule: CanSchedule | None
) -> Plan:
    """Place every call of `func`; the parameters in `constants` are weights."""
    indices = {var: value for var, value in constants.items() if "int" in str(var.ty.dtype)}
    plan = Plan(constants=set(constants), indices=indices)
    plan.spans.update((var, plan.spans_of(value)) for var, value in constants.items())
    open_sizes: set[relax.Var] = set()  # of these only the data tell the size, even where TVM's type names its limit
    for binding in bindings_of(func):
        value = binding.value
        if _has_open_size(value, open_sizes):
            open_sizes.add(binding.var)
        if isinstance(value, relax.Call) and any(arg in open_sizes for arg in value.args):
            origin = origin_of(value) or Origin(binding.var.name, op_name(value))
            plan.decisions[binding.var] = Decision(origin, op_name(value), Where.CPU, _OPEN_SIZE)
        elif isinstance(value, relax.Call):
            plan.decisions[binding.var] = decision = _decide(value, binding.var, plan, can_schedule)
            if is_loop(value):
                why = f"it is in the loop '{decision.origin.name}', which runs on the CPU: {decision.reason}"
                plan.inside += [Decision(origin, origin.op, Where.CPU, why) for origin in operators_in(value)]
            if decision.where is Where.COMPILE_TIME:
                plan.constants.add(binding.var)
        elif isinstance(value, relax.If):
            origin = origin_of(value) or Origin(binding.var.name, "if")
            plan.decisions[binding.var] = Decision(origin, "if", Where.CPU, "its branch is chosen by data")
        elif isinstance(binding, relax.VarBinding):
            plan.spans[binding.var] = plan.spans_of(value)
            if plan.is_constant(value):
                plan.constants.add(binding.var)
    return plan


_OPEN_SIZE = "The size of what it reads depends on the data"


def _has_open_size(value: relax.Expr, open_sizes: set[relax.Var]) -> bool:
    """Whether only the data tell the size of a value; a single number has none."""
    if isinstance(value, relax.TupleGetItem):
        return value.tuple_value in open_sizes
    if isinstance(value, relax.Var):
        return value in open_sizes
    if not isinstance(value, relax.Call):
        return False
    is_number = isinstance(value.ty, relax.TensorType) and value.ty.ndim == 0
    return op_name(value) in DATA_DEPENDENT or (not is_number and any(arg in open_sizes for arg in value.args))


def _decide(call: relax.Call, var: relax.Var, plan: Plan, can_schedule: CanSchedule | None) -> Decision:
    origin, op = origin_of(call) or Origin(var.name, op_name(call)), op_name(call)
    if kernel_name(call):
        return Decision(origin, op, Where.NEURONCORE)
    if is_draw(call):
        return Decision(origin, op, Where.CPU, "its numbers are drawn anew in each run")
    if is_loop(call):
        return Decision(origin, op, Where.CPU, reason_of(call))
    if all(plan.is_constant(arg) for arg in call.args):
        verdict, place = check(call, plan.is_constant, FOLDABLE), Where.COMPILE_TIME
    else:
        verdict, place = check(call, plan.is_constant, CONSTRAINTS), Where.NEURONCORE
    if verdict and can_schedule is not None:
        verdict = can_schedule(plan.with_indices(call), plan.is_constant, plan.spans_of)
    match verdict:
        case Match(spans):
            plan.spans[var] = spans
            return Decision(origin, op, place)
        case Refusal(reason):
            return Decision(origin, op, Where.CPU, reason)
