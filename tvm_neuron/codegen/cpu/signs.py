"""Kernels of signs of floats that keep NaN, of which TVM's make 0."""

from typing import Any

import tvm
from tvm import relax, te, tirx, topi

_SIGN = "relax.sign"
_usual = tvm.ir.Op.get(_SIGN).get_attr("FLegalize")


def _legalize(bb: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    dtype = str(call.ty.dtype)
    if "float" not in dtype:
        return _usual(bb, call)
    one, zero = tirx.const(1, dtype), tirx.const(0, dtype)

    def sign(data: te.Tensor) -> te.Tensor:
        def element(*at: Any) -> Any:
            x = data(*at)
            return tirx.Select(x > zero, one, tirx.Select(x < zero, -one, x))

        return te.compute(data.shape, element, "T_sign", topi.tag.ELEMWISE)

    return bb.call_te(sign, *call.args)


SIGNS = {_SIGN: _legalize}
"""For `relax.transform.LegalizeOps`."""
