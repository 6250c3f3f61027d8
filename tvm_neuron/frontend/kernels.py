"""kernels_as_operators: a module that was lowered to kernels in TIR, as TVM's pipelines do, read as what it was before.

Each call of a kernel becomes a call of one operator that has the kernel as its attribute. So whatever asks what an
operator means finds it as it finds that of `relax.nn.conv2d`, and where it runs is decided by what it computes.
"""

from hashlib import sha256

import tvm
from tvm import relax, s_tir, tirx

from tvm_neuron.frontend.decompose.shapes import static_shape
from tvm_neuron.frontend.origin import OPERATORS_ATTR, Origin, bindings_of, origin_of, rewrite_bindings, with_origin
from tvm_neuron.frontend.own_operators import register

KERNEL = "relax.neuron.kernel"
_FUNCTION, _NAME, _DIGEST = "kernel", "name", "digest"


def kernels_as_operators(mod: tvm.IRModule, func: relax.Function) -> relax.Function:
    """The function with operators for its calls of the module's kernels, where all shapes are static.

    Where TVM lost the model's operators on the way, kernels are named after themselves.
    """
    kernels = {var: kernel for var, kernel in mod.functions_items() if isinstance(kernel, tirx.PrimFunc)}
    found = {binding.var for binding in bindings_of(func) if _is_kernel(binding, kernels)}
    if not found:
        return func
    if any(origin_of(binding.value) is None for binding in bindings_of(func) if binding.var in found):
        func = func.without_attr(OPERATORS_ATTR)

    def rewrite(binding: relax.Binding) -> relax.Binding:
        if binding.var not in found:
            return binding
        call, name = binding.value, binding.value.args[0].name_hint
        kernel = kernels[call.args[0]]
        digest = sha256(kernel.script(show_meta=True).encode()).hexdigest()
        attrs = tvm.ir.make_node("ir.DictAttrs", **{_FUNCTION: kernel, _NAME: name, _DIGEST: digest})
        operator = relax.Call(tvm.ir.Op.get(KERNEL), list(call.args[1].fields), attrs, [call.ty], ret_ty=call.ty)
        origin = origin_of(call) or Origin(binding.var.name, name)
        return relax.VarBinding(binding.var, with_origin(operator, origin))

    return rewrite_bindings(func, rewrite)


def with_root_blocks(mod: tvm.IRModule) -> tvm.IRModule:
    """The module with a block around the loops of every kernel that was written without one: TVM's passes expect it."""
    result = mod.clone()
    for var, kernel in mod.functions_items():
        if isinstance(kernel, tirx.PrimFunc) and not isinstance(kernel.body, s_tir.SBlockRealize):
            root = s_tir.SBlock([], [], [], "root", kernel.body)
            result.update_func(var, kernel.with_body(s_tir.SBlockRealize([], True, root)))
    return result


def attributes(call: relax.Call) -> str:
    """The attributes of a call as text, the same for equal ones; TVM prints no kernel that is one."""
    return str(call.attrs[_DIGEST]) if call.op == tvm.ir.Op.get(KERNEL) else str(call.attrs)


def script(func: relax.Function) -> str:
    """The function as TVMScript, with the kernels that its operators stand for."""
    builder = relax.BlockBuilder()

    def rewrite(binding: relax.Binding) -> relax.Binding:
        call = binding.value
        is_kernel = isinstance(call, relax.Call) and call.op == tvm.ir.Op.get(KERNEL)
        return relax.VarBinding(binding.var, _lowered(builder, call)) if is_kernel else binding

    plain = rewrite_bindings(func, rewrite)
    mod = builder.get()
    if not mod.functions_items():
        return str(func.script(show_meta=False))
    mod.update_func(tvm.ir.GlobalVar("main"), plain)
    return str(mod.script(show_meta=False))


def _is_kernel(binding: relax.Binding, kernels: dict[tvm.ir.GlobalVar, tirx.PrimFunc]) -> bool:
    call = binding.value
    if not isinstance(call, relax.Call) or call.op != tvm.ir.Op.get("relax.call_tir") or len(call.args) != 2:
        return False
    results = call.ty.fields if isinstance(call.ty, relax.TupleType) else [call.ty]
    are_static = all(_is_static(value.ty) for value in call.args[1].fields) and all(map(_is_static, results))
    return call.args[0] in kernels and are_static


def _is_static(type_: relax.Type) -> bool:
    return isinstance(type_, relax.TensorType) and static_shape(relax.Var("of_type", type_)) is not None


def _lowered(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    kernel = builder.add_func(call.attrs[_FUNCTION], call.attrs[_NAME])
    (result,) = call.ty_args
    types = list(result.fields) if isinstance(result, relax.TupleType) else [result]
    return relax.call_tir(kernel, relax.Tuple(call.args), types)


register(KERNEL, "A kernel in TIR: attribute `kernel`, operands as it takes them", _lowered)
