"""Kernels of max and min that keep infinities.

TVM's own start from the largest finite number, so that the maximum of nothing but minus infinity (a masked row of
attention) comes out as a finite number.
"""

from collections.abc import Callable
from typing import Any

from tvm import relax, te, tirx


def _legalize(fold: Callable[[Any, Any], Any], start: str) -> Callable[[relax.BlockBuilder, relax.Call], relax.Expr]:
    def identity(dtype: str) -> Any:
        if str(dtype) == "bool":
            return tirx.const(start == "inf", dtype)
        if not str(dtype).startswith(("float", "bfloat")):
            return tirx.min_value(dtype) if start == "-inf" else tirx.max_value(dtype)
        return tirx.const(float(start), dtype)

    reducer = te.comm_reducer(fold, identity)

    def compute(data: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
        kept = [axis for axis in range(len(data.shape)) if axis not in axes]
        shape = [1 if axis in axes else data.shape[axis] for axis in range(len(data.shape)) if keepdims or axis in kept]

        def element(*at: Any) -> Any:
            reduced = {axis: te.reduce_axis((0, data.shape[axis]), f"k{axis}") for axis in axes}
            place = {axis: at[axis] if keepdims else at[kept.index(axis)] for axis in kept}
            indices = [reduced.get(axis, place.get(axis)) for axis in range(len(data.shape))]
            return reducer(data(*indices), axis=list(reduced.values()))

        return te.compute(shape, element, name="reduced")

    def legalize(bb: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
        rank = len(call.args[0].ty.shape)
        axes = range(rank) if call.attrs.axis is None else call.attrs.axis
        return bb.call_te(compute, call.args[0], tuple(int(axis) % rank for axis in axes), bool(call.attrs.keepdims))

    return legalize


EXTREMES = {
    "relax.max": _legalize(lambda x, y: tirx.max(x, y), "-inf"),
    "relax.min": _legalize(lambda x, y: tirx.min(x, y), "inf"),
}
"""For `relax.transform.LegalizeOps`."""
