"""Kernels of casts from floats to integers that mean the same on every host, and on a NeuronCore.

LLVM leaves open what a float beyond the integer's range becomes. Here fractions are dropped, int32 and int64 end at the
last float inside, others take the low bits, as onnxruntime has them; NaN becomes 0.
"""

from typing import Any

from tvm import relax, te, tirx

_LAST = {"float32": 2.0**63 - 2.0**39, "float64": 2.0**63 - 2.0**10}  # that int64 holds
_LAST_INT32 = {"float32": 2.0**31 - 2.0**7, "float64": 2.0**31 - 1}


def _legalize(bb: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    source, target = str(call.args[0].ty.dtype), str(call.ty.dtype)
    if source not in (*_LAST, "float16", "bfloat16") or not target.startswith(("int", "uint")):
        return call.op.get_attr("FLegalize")(bb, call)
    wide = "float64" if source == "float64" else "float32"

    def compute(data: Any) -> Any:
        return te.compute(data.shape, lambda *at: _converted(data(*at).astype(wide), wide, target), name="cast")

    return bb.call_te(compute, call.args[0])


def _converted(value: Any, source: str, target: str) -> Any:
    if target == "int32":
        return _whole(value, source, -(2.0**31), _LAST_INT32[source]).astype(target)
    found = _whole(value, source, -(2.0**63), _LAST[source]).astype(target)
    if target != "uint64":
        return found
    half = tirx.const(2.0**63, source)
    above = _whole(value - half, source, 0.0, _LAST[source]).astype(target)
    return tirx.Select(tirx.GE(value, half), above + tirx.const(2**63, target), found)


def _whole(value: Any, source: str, low: float, high: float) -> Any:
    near = tirx.max(tirx.min(value, tirx.const(high, source)), tirx.const(low, source))
    return tirx.Select(tirx.isnan(value), tirx.const(0, "int64"), near.astype("int64"))


CASTS = {"relax.astype": _legalize}
"""For `relax.transform.LegalizeOps`."""
