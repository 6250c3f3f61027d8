"""check_positions: what the CPU gathers from positions known at run time is checked there, as on the NeuronCore."""

from typing import Any

import tvm
from tvm import relax
from tvm.relax.expr_functor import PyExprMutator, mutator

from tvm_neuron.frontend.origin import Origin, op_name, origin_of

CHECK = "tvm_neuron.runtime.checked_positions"


@tvm.ir.transform.module_pass(opt_level=0, name="CheckPositions")
def check_positions(mod: tvm.IRModule, _context: tvm.transform.PassContext) -> tvm.IRModule:
    """The module whose gathers count negative positions from the end, and fail where one lies outside of the data.

    TVM's own kernels read whatever memory lies there.
    """
    result = mod.clone()
    for var, func in mod.functions_items():
        if isinstance(func, relax.Function) and isinstance(func.body, relax.SeqExpr):
            result.update_func(var, _Checked(mod).visit_expr(func))
    return result


@mutator
class _Checked(PyExprMutator):
    def visit_call_(self, call: relax.Call) -> relax.Expr:
        call = self.visit_expr_post_order(call)
        first = _first_dimension(call)
        if first is None or isinstance(call.args[1], tvm.ir.GenericConst):
            return call
        data, positions = call.args[:2]
        origin = origin_of(call) or Origin("", op_name(call))
        are_tuples = op_name(call) == "gather_nd"
        told = (tvm.ir.StringImm(f"{origin.op} '{origin.name}'"), _number(first), _number(are_tuples))
        checked = self.builder_.emit(relax.call_pure_packed(CHECK, positions, data, *told, ty_args=positions.ty))
        return relax.Call(call.op, [data, checked, *call.args[2:]], call.attrs, call.ty_args, call.span, ret_ty=call.ty)


def _first_dimension(call: relax.Call) -> int | None:
    """The dimension of the data in which the second operand chooses, without a limit of TVM's own; None for none."""
    if not isinstance(call.op, tvm.ir.Op):
        return None
    attrs: Any = call.attrs
    match op_name(call):
        case "take" if attrs.mode == "fast":
            return 0 if attrs.axis is None else int(attrs.axis) % call.args[0].ty.ndim
        case "gather_elements":
            return int(attrs.axis) % call.args[0].ty.ndim
        case "gather_nd":
            return int(attrs.batch_dims)
    return None


def _number(value: int) -> tvm.ir.Expr:
    return tvm.tirx.IntImm("int64", int(value))
