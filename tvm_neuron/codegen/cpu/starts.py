"""What maxima and minima start from: infinities, but for the time of scheduling.

TVM splits only those reductions that start from the largest finite number, as which infinities alone would come out.
"""

from collections.abc import Callable
from math import isinf

import tvm_ffi
from tvm import s_tir, tirx

Change = Callable[[tirx.FloatImm], tirx.Expr]


def finite(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """The kernel with the largest finite number in the place of each infinity that a reduction starts from."""

    def change(start: tirx.FloatImm) -> tirx.Expr:
        if not isinf(start.value):
            return start
        return (tirx.max_value if start.value > 0 else tirx.min_value)(str(start.ty))

    return _with_starts(func, change)


def infinite(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """The same the other way round, also where a reduction's start has become a block of its own."""

    def change(start: tirx.FloatImm) -> tirx.Expr:
        is_largest = abs(start.value) == tirx.max_value(str(start.ty)).value
        return tirx.const(float("inf" if start.value > 0 else "-inf"), str(start.ty)) if is_largest else start

    return _with_starts(func, change)


def _with_starts(func: tirx.PrimFunc, change: Change) -> tirx.PrimFunc:
    def rewritten(block: s_tir.SBlock) -> s_tir.SBlock:
        is_start = str(block.name_hint).endswith("_init")  # as decompose_reduction calls it
        body, init = (_changed(block.body, change) if is_start else block.body), _changed(block.init, change)
        if body is block.body and init is block.init:
            return block
        return s_tir.SBlock(
            block.iter_vars, block.reads, block.writes, block.name_hint, body, init, block.alloc_buffers,
            block.match_buffers, block.annotations, block.span,
        )  # fmt: skip

    return tvm_ffi.structural_map(func, (s_tir.SBlock, rewritten))


def _changed(stmt: tirx.Stmt | None, change: Change) -> tirx.Stmt | None:
    if not isinstance(stmt, tirx.BufferStore) or not isinstance(stmt.value, tirx.FloatImm):
        return stmt
    value = change(stmt.value)
    return stmt if value is stmt.value else tirx.BufferStore(stmt.buffer, value, stmt.indices)
