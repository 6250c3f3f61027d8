"""Graph passes before the partition: bind weights, decompose for inference, drop what does nothing.

Every pass keeps the origins of calls (see `origin.py`). Constants are not folded here: `relax`'s FoldConstant
compiles each folded call (13 s on ResNet-50); the code generator folds with NumPy.
"""

from collections.abc import Callable

import tvm
import tvm_ffi
from tvm import relax

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.bound_positions import bound_positions
from tvm_neuron.frontend.decompose import decompose
from tvm_neuron.frontend.entry import MAIN, with_main
from tvm_neuron.frontend.join_convolutions import join_convolutions
from tvm_neuron.frontend.join_slices import join_slices
from tvm_neuron.frontend.kernels import kernels_as_operators, with_root_blocks
from tvm_neuron.frontend.match_cast import unnest_match_casts
from tvm_neuron.frontend.origin import OPERATORS_ATTR, bindings_of, origin_of, retag, rewrite_bindings, tag_natively

Params = dict[str, tvm.runtime.Tensor]
Rewrite = Callable[[relax.Function], relax.Function]


def normalize(mod: tvm.IRModule, params: Params | None = None) -> tvm.IRModule:
    """`mod` ready to be partitioned: its entry is `main`, weights bound, inference operators only, calls with origins.

    `params` are weights by input name; without them those in the entry's attribute `params` are bound, if any.
    Raises ModelError when a name in `params` is no input, or its shape or dtype differs from the input's, or the module
    has no entry, or several.
    """
    mod = with_root_blocks(with_main(mod))
    mod = _on_functions(mod, unnest_match_casts)
    mod = _on_functions(mod, lambda func: kernels_as_operators(mod, func))
    mod = _on_functions(mod, _ensure_origins)
    mod = bind_params(mod, params)
    mod = _on_functions(mod, decompose)
    for rewrite in (relax.transform.DecomposeOpsForInference(), relax.transform.CanonicalizeBindings()):
        mod = _on_functions(rewrite(mod), retag)
    mod = _on_functions(mod, join_reshapes)
    mod = _on_functions(mod, drop_empty_parts)
    mod = _on_functions(mod, drop_identities)
    mod = _without_unread(relax.transform.CanonicalizeBindings()(mod))
    mod = _on_functions(mod, bound_positions)
    mod = _on_functions(mod, join_slices)
    return _without_unread(_on_functions(mod, join_convolutions))


def bind_params(mod: tvm.IRModule, params: Params | None) -> tvm.IRModule:
    """Replace weight inputs of `main` by constants that share the weights' memory."""
    main = mod[MAIN]
    given = params or _attached_params(main)
    inputs = {var.name: var for var in main.params}
    for name, value in given.items():
        _check_param(name, value, inputs)
    if not given:
        return mod
    bound = main.bind_params({inputs[name]: relax.const(value) for name, value in given.items()})
    attrs = {key: value for key, value in bound.attrs.items() if key != "params"}
    mod = mod.clone()
    mod["main"] = relax.Function(
        bound.params, bound.body, bound.ret_ty, bound.is_pure, tvm.ir.make_node("ir.DictAttrs", **attrs), bound.span
    )
    return mod


def join_reshapes(func: relax.Function) -> relax.Function:
    """Let a reshape of what a reshape made read what that one reads; often nothing is left of the two then."""
    read: dict[relax.Var, relax.Expr] = {}

    def rewrite(binding: relax.Binding) -> relax.Binding:
        call = binding.value if isinstance(binding, relax.VarBinding) else None
        if not isinstance(call, relax.Call) or call.op != tvm.ir.Op.get("relax.reshape"):
            return binding
        data, *shape = call.args
        read[binding.var] = read.get(data, data)
        if data not in read:
            return binding
        joined = relax.Call(call.op, [read[data], *shape], call.attrs, call.ty_args, call.span, ret_ty=call.ty)
        return relax.VarBinding(binding.var, joined)

    return rewrite_bindings(func, rewrite)


def drop_identities(func: relax.Function) -> relax.Function:
    """Replace reshape, broadcast_to and astype by their operand where they change nothing."""
    return rewrite_bindings(func, lambda b: relax.VarBinding(b.var, b.value.args[0]) if _is_identity(b) else b)


def drop_empty_parts(func: relax.Function) -> relax.Function:
    """Replace concatenations by those of the operands that have elements, where there are some."""

    def rewrite(binding: relax.Binding) -> relax.Binding:
        call = binding.value if isinstance(binding, relax.VarBinding) else None
        if not isinstance(call, relax.Call) or call.op != tvm.ir.Op.get("relax.concat"):
            return binding
        if not isinstance(call.args[0], relax.Tuple):
            return binding
        parts = [part for part in call.args[0].fields if not _has_no_elements(part)]
        if not parts or len(parts) == len(call.args[0].fields):
            return binding
        joined = relax.Call(call.op, [relax.Tuple(parts)], call.attrs, call.ty_args, call.span, ret_ty=call.ty)
        return relax.VarBinding(binding.var, joined if len(parts) > 1 else parts[0])

    return rewrite_bindings(func, rewrite)


def _has_no_elements(part: relax.Expr) -> bool:
    shape = part.ty.shape
    return isinstance(shape, relax.ShapeExpr) and any(dim == 0 for dim in shape if isinstance(dim, tvm.tirx.IntImm))


def _is_identity(binding: relax.Binding) -> bool:
    call = binding.value if isinstance(binding, relax.VarBinding) else None
    if not isinstance(call, relax.Call) or not isinstance(call.op, tvm.ir.Op):
        return False
    if call.op.name not in ("relax.reshape", "relax.broadcast_to", "relax.astype"):
        return False
    return bool(tvm_ffi.structural_equal(call.ty, call.args[0].ty))


def _ensure_origins(func: relax.Function) -> relax.Function:
    if func.attrs and OPERATORS_ATTR in func.attrs:
        return retag(func)
    func = tag_natively(func)
    found = [origin_of(binding.value) for binding in bindings_of(func)]
    return func.with_attr(OPERATORS_ATTR, [origin.encode() for origin in found if origin is not None])


def _attached_params(main: relax.Function) -> Params:
    """The weights that an importer attached to `main`, in the order of the inputs after the model's own."""
    if not main.attrs or "params" not in main.attrs:
        return {}
    values: list[tvm.runtime.Tensor] = list(main.attrs["params"])
    inputs = int(main.attrs["num_input"]) if "num_input" in main.attrs else len(main.params) - len(values)
    names = [var.name for var in main.params[max(inputs, 0) :]]
    if not names:
        return {}  # as TVM's importer of TFLite has it: they are constants already
    if len(names) != len(values):
        raise ModelError(
            f"the module's attribute 'params' holds {len(values)} weights for the inputs {', '.join(names)}: "
            "give the weights by name, params={...}"
        )
    return dict(zip(names, values, strict=True))


def _check_param(name: str, value: tvm.runtime.Tensor, inputs: dict[str, relax.Var]) -> None:
    if name not in inputs:
        raise ModelError(f"params holds '{name}', which is no input of the model: {', '.join(inputs)}")
    wanted = inputs[name].ty
    shape = tuple(int(dim) for dim in wanted.shape) if isinstance(wanted.shape, relax.ShapeExpr) else None
    if (shape is not None and shape != tuple(value.shape)) or str(wanted.dtype) != str(value.dtype):
        raise ModelError(
            f"params['{name}'] has shape {tuple(value.shape)} and dtype {value.dtype}; "
            f"the model wants {shape} and {wanted.dtype}"
        )


def _without_unread(mod: tvm.IRModule) -> tvm.IRModule:
    return relax.transform.DeadCodeElimination(_entry_names(mod))(mod)


def _entry_names(mod: tvm.IRModule) -> list[str]:
    return [var.name_hint for var, func in mod.functions_items() if isinstance(func, relax.Function)]


def _on_functions(mod: tvm.IRModule, rewrite: Rewrite) -> tvm.IRModule:
    """`mod` with `rewrite` applied to its graph functions (not to those fused or already given to a code generator)."""
    result = mod.clone()
    for var, func in mod.functions_items():
        if isinstance(func, relax.Function) and isinstance(func.body, relax.SeqExpr) and not _is_closed(func):
            result.update_func(var, rewrite(func))
    return result


def _is_closed(func: relax.Function) -> bool:
    return any(key in func.attrs for key in ("Primitive", "Composite", "Codegen")) if func.attrs else False
