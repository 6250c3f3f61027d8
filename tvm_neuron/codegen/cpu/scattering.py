"""Kernels of scatter_elements: updates of any shape that fits into the data's, in their order.

TVM's own takes the data's strides for those of updates that have fewer elements than the data beside the axis.
"""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from tvm import relax, te, tirx
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T  # noqa: N812  as everywhere in TVM

_COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "update": lambda _old, new: new,
    "add": lambda old, new: old + new,
    "mul": lambda old, new: old * new,
    "min": lambda old, new: tirx.min(old, new),
    "max": lambda old, new: tirx.max(old, new),
}


def _legalize(bb: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    if call.attrs.reduction not in _COMBINE:
        return call.op.get_attr("FLegalize")(bb, call)
    axis = int(call.attrs.axis) % call.args[0].ty.ndim
    return bb.call_te(_scatter, *call.args, axis, str(call.attrs.reduction), primfunc_name_hint="scatter_elements")


def _scatter(data: te.Tensor, indices: te.Tensor, updates: te.Tensor, axis: int, reduction: str) -> te.Tensor:
    def write(ins: list[Any], outs: list[Any]) -> tirx.Stmt:
        given, positions, news = ins
        (out,) = outs
        with IRBuilder() as ib, T.seq_scope():
            with ExitStack() as loops:
                at = _loops(loops, given.shape, range(len(given.shape)))
                T.buffer_store(out, given[tuple(at)], at)
            with ExitStack() as loops:  # the axis is the innermost, so that nothing is written by two threads
                beside = [each for each in range(len(positions.shape)) if each != axis]
                at = _loops(loops, positions.shape, [*beside, axis])
                place = [positions[tuple(at)] if each == axis else at[each] for each in range(len(at))]
                T.buffer_store(out, _COMBINE[reduction](out[tuple(place)], news[tuple(at)]), place)
        return ib.get()

    return te.extern([data.shape], [data, indices, updates], write, dtype=[data.dtype], name="scatter_elements")


def _loops(stack: ExitStack, extents: Any, order: Any) -> list[Any]:
    """Nested loops in an order of the dimensions, the outermost parallel unless it is the only one; their variables."""
    found = {}
    for number, axis in enumerate(order):
        kind = T.parallel if number == 0 and len(extents) > 1 else T.serial
        found[axis] = stack.enter_context(kind(0, extents[axis]))
    return [found[axis] for axis in range(len(extents))]


SCATTERING = {"relax.scatter_elements": _legalize}
"""For `relax.transform.LegalizeOps`."""
