"""Cast, to and from every dtype of numbers, and BitCast."""

from typing import Any

import numpy as np
from onnx import helper
from tvm import relax

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.onnx.converters.converter import Converter, Node
from tvm_neuron.frontend.onnx.converters.small_floats import SMALL_FLOATS, decoded, encoded, reinterpreted
from tvm_neuron.frontend.onnx.narrow import Narrow
from tvm_neuron.runtime.tensors import CARRIERS

_NARROW_INTEGERS = {"int4": 4, "uint4": 4, "int2": 2, "uint2": 2}


def plain(node: Node, position: int) -> relax.Expr:
    """The operand in a dtype that one computes with: what is narrow or a small float as float32 or as bytes."""
    value = node.inputs[position]
    expr = value.expr if isinstance(value, Narrow) else value
    return decoded(node, expr, str(expr.ty.dtype)) if str(expr.ty.dtype) in SMALL_FLOATS else expr


def converted(node: Node, value: relax.Expr, dtype: str, saturate: bool = True, round_mode: str = "up") -> Any:
    """`value`, of a plain dtype, in `dtype`: out of range, integers of few bits wrap and small floats saturate."""
    if dtype in SMALL_FLOATS:
        if str(value.ty.dtype) == "float64":
            raise ModelError(f"float64 to {dtype} would be rounded twice; cast to float32 in the model")
        result = encoded(node, node.emit(relax.op.astype(value, "float32")), dtype, saturate, round_mode)
        return Narrow(result, dtype) if dtype in CARRIERS else result
    if dtype in _NARROW_INTEGERS:
        bits, carrier = _NARROW_INTEGERS[dtype], CARRIERS[dtype]
        mask, sign = relax.const((1 << bits) - 1, "int32"), relax.const(1 << (bits - 1), carrier)
        low = node.emit(relax.op.bitwise_and(node.emit(relax.op.astype(value, "int32")), mask))
        whole = node.emit(relax.op.astype(low, carrier))
        if dtype.startswith("i"):
            whole = node.emit(relax.op.subtract(node.emit(relax.op.bitwise_xor(whole, sign)), sign))
        return Narrow(whole, dtype)
    return relax.op.astype(value, dtype)


def _cast(node: Node) -> Any:
    """The operand in another dtype, as the attributes saturate and round_mode say; constants are left to TVM."""
    dtype = target(node.attrs["to"])
    source = node.inputs[0]
    if dtype in (*SMALL_FLOATS, *CARRIERS) or isinstance(source, Narrow) or node.dtype() in SMALL_FLOATS:
        return _as(node, dtype)
    is_rounded = "float" in node.dtype() and "int" in dtype  # which TVM writes as arithmetic on wide integers
    return _as(node, dtype) if is_rounded and node.constant(0) is None else None


def _cast_like(node: Node) -> Any:
    """The operand in the dtype of another."""
    like = node.inputs[1]
    return _as(node, like.dtype if isinstance(like, Narrow) else node.dtype(1))


def _as(node: Node, dtype: str) -> Any:
    round_mode = node.attrs.get("round_mode", b"up").decode()
    return converted(node, plain(node, 0), dtype, bool(node.attrs.get("saturate", 1)), round_mode)


def target(elem_type: int) -> str:
    """The name of an ONNX element type of numbers."""
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(elem_type))
    if dtype.kind == "O":
        raise ModelError("it makes strings, which no tensor of the compiler holds")
    return dtype.name


def _bit_cast(node: Node) -> relax.Expr:
    """The bits of the operand, read as another dtype of the same width."""
    if "bool" in (node.dtype(), target(node.attrs["to"])):  # one byte, of which TVM computes with one bit
        return relax.op.astype(node.inputs[0], target(node.attrs["to"]))
    return reinterpreted(node, node.inputs[0], target(node.attrs["to"]))


CONVERTERS: dict[str, Converter] = {"BitCast": _bit_cast, "Cast": _cast, "CastLike": _cast_like}
