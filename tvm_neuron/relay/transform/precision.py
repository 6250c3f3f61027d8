"""ToMixedPrecision: products and convolutions in a narrower dtype, what loses by it in float32."""

from typing import Any

import tvm

from tvm_neuron.errors import OptionError
from tvm_neuron.relay.ir.expr import Attrs, Call, Function, If, Let, Op, Tuple, TupleGetItem
from tvm_neuron.relay.ir.functor import children, post_order, rebuilt
from tvm_neuron.relay.ir.ty import TensorType, TupleType
from tvm_neuron.relay.op import OPERATORS, namespace
from tvm_neuron.relay.op.kinds import OpPattern, pattern_of
from tvm_neuron.relay.transform.passes import function_pass_of

_OPS = namespace()
_WIDE = "float32"
_NARROW = ("float16", "bfloat16")
_SENSITIVE = {"exp", "log", "log2", "log10", "power", "erf", "rsqrt", "tan", "sinh", "cosh", "divide"}
"""Elementwise operators whose results leave the narrow dtype's range, or lose most of their digits."""


def ToMixedPrecision(mixed_precision_type: str = "float16", missing_op_mode: int = 1) -> tvm.transform.Pass:  # noqa: N802
    """Convolutions and matrix products in the narrow dtype, and what follows them; the rest stays in float32.

    Results have the dtypes that they had. `missing_op_mode` changes nothing: every operator here has its place.

    Raises OptionError: the dtype is not float16 or bfloat16.
    """
    del missing_op_mode
    if mixed_precision_type not in _NARROW:
        raise OptionError(f"ToMixedPrecision: '{mixed_precision_type}' is none of {', '.join(_NARROW)}")
    return function_pass_of("ToMixedPrecision", lambda func, _mod: _mixed(func, mixed_precision_type))


def _mixed(func: Function, narrow: str) -> Function:
    new: dict[Any, Any] = {}
    dtypes: dict[Any, str] = {}
    for node in post_order(func.body, lambda node: [] if isinstance(node, Function | If | Let) else children(node)):
        new[node], dtypes[node] = _mixed_node(node, new, dtypes, narrow)
    body = _cast(new[func.body], func.body.ty, dtypes[func.body], _WIDE)
    return Function(func.params, body, None, attrs=func.attrs, span=func.span)


def _mixed_node(node: Any, new: dict[Any, Any], dtypes: dict[Any, str], narrow: str) -> tuple[Any, str]:
    """What a node becomes, and the dtype that its floats have then."""
    if isinstance(node, Tuple):
        dtype = _common([dtypes[field] for field in node.fields])
        return Tuple([_cast(new[f], f.ty, dtypes[f], dtype) for f in node.fields], node.span), dtype
    if isinstance(node, TupleGetItem):
        return rebuilt(node, new), dtypes[node.tuple_value]
    if not isinstance(node, Call):
        return node, _WIDE
    dtype = _dtype_of(node, [dtypes[arg] for arg in node.args], narrow)
    args = [_cast(new[arg], arg.ty, dtypes[arg], dtype) for arg in node.args]
    attrs = node.attrs.as_dict()
    if attrs.get("out_dtype") == _WIDE:
        attrs["out_dtype"] = ""
    is_floats = isinstance(node.op, Op) and attrs.get("dtype") not in (_WIDE,)
    return Call(node.op, args, Attrs(attrs), node.type_args, node.span), dtype if is_floats else _WIDE


def _dtype_of(call: Call, operands: list[str], narrow: str) -> str:
    if not isinstance(call.op, Op) or str(call.op.name) in _SENSITIVE or "dtype" in call.attrs.keys():  # noqa: SIM118
        return _WIDE
    name = str(call.op.name)
    family = OPERATORS[name].family.rpartition(".")[2] if name in OPERATORS else ""
    if family in ("convolution", "dense"):
        return narrow
    is_following = pattern_of(call.op) <= OpPattern.INJECTIVE or family == "pooling"
    return narrow if is_following and narrow in operands else _WIDE


def _common(dtypes: list[str]) -> str:
    return dtypes[0] if dtypes and len(set(dtypes)) == 1 else _WIDE


def _cast(expr: Any, ty: Any, now: str, wanted: str) -> Any:
    """The value with its floats in another dtype; whole numbers stay."""
    if now == wanted or (isinstance(ty, TensorType) and str(ty.dtype) != _WIDE):
        return expr
    if isinstance(ty, TupleType):
        return Tuple([_cast(TupleGetItem(expr, index), part, now, wanted) for index, part in enumerate(ty.fields)])
    return _OPS["cast"](expr, wanted)
