"""Constants out of a function and back: the partition works on variables, so weights are never compared or copied."""

from dataclasses import dataclass

import tvm
from tvm import relax

from tvm_neuron.frontend.origin import rewrite_bindings


@dataclass(frozen=True)
class Lifted:
    """`func` with each constant operand replaced by a parameter at the end, and what those stand for."""

    func: relax.Function
    constants: dict[relax.Var, tvm.ir.GenericConst]


def lift_constants(func: relax.Function) -> Lifted:
    """Turn the constant operands of the calls of `func` into parameters; equal objects into the same one."""
    lifted: dict[tvm.ir.GenericConst, relax.Var] = {}

    def rewrite(binding: relax.Binding) -> relax.Binding:
        call = binding.value if isinstance(binding, relax.VarBinding) else None
        if not isinstance(call, relax.Call) or not isinstance(call.op, tvm.ir.Op):
            return binding
        args = [_lift(arg, lifted) for arg in call.args]
        return relax.VarBinding(
            binding.var, relax.Call(call.op, args, call.attrs, call.ty_args, call.span, ret_ty=call.ty)
        )

    rewritten = rewrite_bindings(func, rewrite)
    params = [*func.params, *lifted.values()]
    result = relax.Function(params, rewritten.body, func.ret_ty, func.is_pure, func.attrs, func.span)
    return Lifted(result, {var: constant for constant, var in lifted.items()})


def _lift(expr: relax.Expr, lifted: dict[tvm.ir.GenericConst, relax.Var]) -> relax.Expr:
    if isinstance(expr, tvm.ir.GenericConst):
        if expr not in lifted:
            lifted[expr] = relax.Var(f"neuron_constant_{len(lifted)}", expr.ty)
        return lifted[expr]
    return relax.Tuple([_lift(value, lifted) for value in expr.fields]) if isinstance(expr, relax.Tuple) else expr


def lower_constants(func: relax.Function, constants: dict[relax.Var, tvm.ir.GenericConst]) -> relax.Function:
    """The inverse of `lift_constants`: the parameters in `constants` become constants again."""
    kept = [var for var in func.params if var not in constants]
    bound = func.bind_params(dict(constants))
    return relax.Function(bound.params[: len(kept)], bound.body, bound.ret_ty, bound.is_pure, func.attrs, func.span)
