"""draw_at_run_time: random numbers of each run come from a function of the runtime."""

import tvm
from tvm import relax

from tvm_neuron.frontend.drawing import is_draw, kind_of
from tvm_neuron.frontend.origin import rewrite_bindings

_FUNCTION = "tvm_neuron.runtime.drawn"


@tvm.transform.module_pass(opt_level=0, name="DrawAtRunTime")
def draw_at_run_time(mod: tvm.IRModule, _context: tvm.transform.PassContext) -> tvm.IRModule:
    """The module with calls of that function in place of the operator."""
    mod = mod.clone()
    for var, func in mod.functions_items():
        if isinstance(func, relax.Function) and isinstance(func.body, relax.SeqExpr):
            mod.update_func(var, rewrite_bindings(func, _drawn))
    return mod


def _drawn(binding: relax.Binding) -> relax.Binding:
    call = binding.value
    if not is_draw(call):
        return binding
    kind, dtype = (tvm.ir.StringImm(text) for text in (kind_of(call), str(call.ty.dtype)))
    return relax.VarBinding(binding.var, relax.call_pure_packed(_FUNCTION, kind, dtype, call.ty.shape, ty_args=call.ty))
