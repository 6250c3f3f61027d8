"""The bits of numbers as numbers of another dtype of the same width, as an operator: Relax has none."""

import tvm
from tvm import relax, topi

from tvm_neuron.frontend.own_operators import register

BITS = "relax.neuron.bits"
BITS_DOMAIN = "tvm_neuron.bits"
"""Of ONNX nodes whose type is the dtype's name."""


def call_bits(value: relax.Expr, dtype: str) -> relax.Call:
    """`value`, a tensor of a known shape, read as `dtype`."""
    ty = relax.TensorType(value.ty.shape, dtype)
    return relax.Call(tvm.ir.Op.get(BITS), [value], None, [ty], ret_ty=ty)


def _kernel(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    return builder.call_te(topi.reinterpret, call.args[0], str(call.ty.dtype))


register(BITS, "The operand's bits as the result's dtype", _kernel)
