"""Kernels for float16 and bfloat16 that compute in float32 and round once: sums, steps, and what there is none for."""

from collections.abc import Callable, Mapping

import tvm
from tvm import relax

Legalize = Callable[[relax.BlockBuilder, relax.Call], relax.Expr]

_NARROW = ("float16", "bfloat16")
_MISSING = (
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cosh", "sinh",
    "isfinite", "isinf", "isnan", "mod", "power",
    "tanh",  # a quotient of sums with exp(2x), which have 3 digits: tanh(0.00016) was 0.00024
)  # fmt: skip
_SUMS = (
    "sum", "mean", "prod", "variance", "std", "cumsum", "cumprod", "matmul", "einsum", "nn.conv1d", "nn.conv2d",
    "nn.conv3d", "nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose", "nn.avg_pool1d", "nn.avg_pool2d",
    "nn.avg_pool3d", "nn.adaptive_avg_pool1d", "nn.adaptive_avg_pool2d", "nn.adaptive_avg_pool3d", "nn.softmax",
    "nn.log_softmax", "nn.layer_norm", "nn.instance_norm", "nn.group_norm", "nn.rms_norm", "nn.batch_norm",
    "image.resize2d", "image.grid_sample",
)  # fmt: skip
"""TVM's kernels of these add up in the dtype of their operands, of whose sums float16 loses all but 3 digits."""


_STEPS = ("erf", "sigmoid", "nn.gelu", "nn.gelu_tanh", "nn.selu", "nn.silu", "nn.softplus")
"""TVM's kernels of these round every step: 1 + erf(x) has no digit left far below 0."""


def with_narrow_floats(others: Mapping[str, Legalize]) -> dict[str, Legalize]:
    """`others`, for `relax.transform.LegalizeOps`, and the operators that 16 bits are too few for."""
    names = [f"relax.{op}" for op in (*_MISSING, *_STEPS, *_SUMS)]
    return {**others, **{name: _in_float32(name, others) for name in names}}


def _in_float32(name: str, others: Mapping[str, Legalize]) -> Legalize:
    usual = others.get(name) or tvm.ir.Op.get(name).get_attr("FLegalize")

    def legalize(bb: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
        if not any(map(_is_narrow, _tensors(call))):
            return usual(bb, call)
        wide = [_widened(bb, arg) for arg in call.args]
        return _rounded(bb, bb.emit(relax.Call(call.op, wide, call.attrs)), call.ty)

    return legalize


def _is_narrow(ty: relax.Type) -> bool:
    return isinstance(ty, relax.TensorType) and str(ty.dtype) in _NARROW


def _tensors(call: relax.Call) -> list[relax.Type]:
    """The types of its operands, tuples opened."""
    types = [arg.ty for arg in call.args]
    return [part for ty in types for part in (ty.fields if isinstance(ty, relax.TupleType) else [ty])]


def _widened(bb: relax.BlockBuilder, arg: relax.Expr) -> relax.Expr:
    if isinstance(arg.ty, relax.TupleType):
        fields = [relax.TupleGetItem(arg, number) for number in range(len(arg.ty.fields))]
        return relax.Tuple([_widened(bb, bb.emit(field)) for field in fields])
    return bb.emit(relax.op.astype(arg, "float32")) if _is_narrow(arg.ty) else arg


def _rounded(bb: relax.BlockBuilder, wide: relax.Expr, ty: relax.Type) -> relax.Expr:
    """`wide` with the dtypes of a type."""
    if isinstance(ty, relax.TupleType):
        fields = [bb.emit(relax.TupleGetItem(wide, number)) for number in range(len(ty.fields))]
        return relax.Tuple([_rounded(bb, field, part) for field, part in zip(fields, ty.fields, strict=True)])
    return bb.emit(relax.op.astype(wide, str(ty.dtype))) if str(wide.ty.dtype) != str(ty.dtype) else wide
