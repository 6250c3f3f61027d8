"""Random numbers that are drawn anew in each run, as an operator without operands: the CPU draws them."""

import tvm
from tvm import relax

from tvm_neuron.frontend.own_operators import register

DRAW = "relax.neuron.draw"
DRAW_DOMAIN = "tvm_neuron.random"
"""Of ONNX nodes whose type is the distribution, with attributes `shape` and `is_double`."""

UNIFORM, NORMAL = "uniform", "normal"
_KIND, _NUMBER = "kind", "number"


def call_draw(kind: str, shape: tuple[int, ...], dtype: str, number: int) -> relax.Call:
    """Numbers from 0 to 1, or normal ones; `number` tells calls of one function apart, which are not the same."""
    ty = relax.TensorType(shape, dtype)
    attrs = tvm.ir.make_node("ir.DictAttrs", **{_KIND: kind, _NUMBER: number})
    return relax.Call(tvm.ir.Op.get(DRAW), [], attrs, [ty], ret_ty=ty)


def is_draw(expr: relax.Expr) -> bool:
    """Whether it is a call of `DRAW`."""
    return isinstance(expr, relax.Call) and bool(expr.op == tvm.ir.Op.get(DRAW))


def kind_of(call: relax.Call) -> str:
    """The distribution."""
    return str(call.attrs[_KIND])


register(DRAW, "Random numbers of each run: attributes `kind` and `number`")
