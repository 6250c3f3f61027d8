"""Cumulative sums: products with a triangular matrix of ones, which the PE array makes in one go; cumulative products.

As in any product, an infinity or NaN in the data reaches every sum along its axis (0 * inf is NaN).
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from math import prod

import numpy as np
from tvm import relax

from tvm_neuron.frontend.decompose.emitter import Emitter, Expansion
from tvm_neuron.frontend.decompose.shapes import is_float, static_shape

Emit = Callable[[relax.Expr], relax.Expr]
MAX_EXTENT = 2048
"""Of a matrix, which grows with the square of the axis: 8 MB of bfloat16 at this extent."""
_PART = 1024  # elements of a longer axis that are summed at a time
LONGEST = 1 << 16  # of 64 parts, each of which takes operators of its own
_MOST_COUNTED = 1 << 16  # whole numbers of 8 bits: their sums stay below 2^24, and are kept in float32


def _cumsum(call: relax.Call, block: Emitter) -> relax.Expr | None:
    """y[..., j] = sum of x[..., k] over k <= j (k < j if exclusive) = x @ ones[k <= j]."""
    data, axis, dtype = call.args[0], call.attrs.axis, str(call.ty.dtype)
    shape = static_shape(data)
    if shape is None or axis is None:
        return None
    axis, is_exclusive = int(axis) % len(shape), bool(call.attrs.exclusive)
    if is_float(call) and is_float(data) and shape[axis] <= LONGEST:
        return summed(data, axis, is_exclusive, False, block.emit)
    if dtype in ("int32", "int64") and prod(shape) <= _MOST_COUNTED and _is_narrow(data, block.made):
        wide = block.emit(relax.op.astype(data, "float32"))
        return block.emit(relax.op.astype(summed(wide, axis, is_exclusive, False, block.emit), dtype))
    return _widely_summed(call, block)


def _is_narrow(data: relax.Expr, made: Mapping[relax.Var, relax.Expr]) -> bool:
    """Whether it has whole numbers of at most 8 bits, as truth values have that a model counts."""
    while (value := made.get(data)) is not None and isinstance(value, relax.Call) and value.op.name == "relax.astype":
        if str(data.ty.dtype).startswith(("float", "bfloat")):
            return False
        data = value.args[0]
    return str(data.ty.dtype) in ("bool", "int8", "uint8")


def summed(data: relax.Expr, axis: int, is_exclusive: bool, is_reverse: bool, emit: Emit) -> relax.Expr:
    """The sums of floats from the start of an axis (its end, reverse) up to each element, which exclusive ones lack.

    A long axis is cut into parts, each of which adds what those before it come to.
    """
    extent = int(data.ty.shape[axis])
    return (_product if extent <= MAX_EXTENT else _by_parts)(data, axis, is_exclusive, is_reverse, emit)


def _by_parts(data: relax.Expr, axis: int, is_exclusive: bool, is_reverse: bool, emit: Emit) -> relax.Expr:
    """In float32: what lies before a part stands for all of it."""
    extent, dtype, found, before = int(data.ty.shape[axis]), str(data.ty.dtype), list[relax.Expr](), None
    wide = emit(relax.op.astype(data, "float32"))
    starts = range(0, extent, _PART)
    for start in reversed(starts) if is_reverse else starts:
        part = emit(relax.op.strided_slice(wide, [axis], [start], [min(start + _PART, extent)]))
        own = _product(part, axis, is_exclusive, is_reverse, emit)
        found.append(own if before is None else emit(relax.op.add(own, before)))
        total = emit(relax.op.sum(part, axis, keepdims=True))
        before = total if before is None else emit(relax.op.add(before, total))
    return emit(relax.op.astype(emit(relax.op.concat(found[::-1] if is_reverse else found, axis)), dtype))


def _product(data: relax.Expr, axis: int, is_exclusive: bool, is_reverse: bool, emit: Emit) -> relax.Expr:
    shape, dtype = [int(extent) for extent in data.ty.shape], str(data.ty.dtype)
    weights = _triangle(shape[axis], is_exclusive, is_reverse, dtype)
    if axis == len(shape) - 1:
        return emit(relax.op.matmul(data, weights))
    order = [*(d for d in range(len(shape)) if d != axis), axis]
    product = emit(relax.op.matmul(emit(relax.op.permute_dims(data, order)), weights))
    return emit(relax.op.permute_dims(product, [order.index(d) for d in range(len(shape))]))


@lru_cache(2)
def _triangle(extent: int, is_exclusive: bool, is_reverse: bool, dtype: str) -> relax.Expr:
    """All parts of a long axis share one."""
    ones = np.ones((extent, extent))
    return relax.const(np.tril(ones, -int(is_exclusive)) if is_reverse else np.triu(ones, int(is_exclusive)), dtype)


def _cumprod(call: relax.Call, block: Emitter) -> relax.Expr | None:
    """In float32, in as many products as the length has bits, each with what lies twice as far before."""
    data, axis, dtype = call.args[0], call.attrs.axis, str(call.ty.dtype)
    shape = static_shape(data)
    if shape is None or axis is None or not is_float(call) or not is_float(data) or dtype == "float64":
        return None
    axis, extent = int(axis) % len(shape), shape[int(axis)]

    def earlier(source: relax.Expr, distance: int) -> relax.Expr:
        kept = block.emit(relax.op.strided_slice(source, [axis], [0], [extent - distance]))
        ones = np.ones([distance if d == axis else n for d, n in enumerate(shape)])
        return block.emit(relax.op.concat([relax.const(ones, "float32"), kept], axis))

    found: relax.Expr = block.emit(relax.op.astype(data, "float32"))
    for bit in range((extent - 1).bit_length()):
        found = block.emit(relax.op.multiply(found, earlier(found, 1 << bit)))
    return block.emit(relax.op.astype(earlier(found, 1) if call.attrs.exclusive else found, dtype))


def _widely_summed(call: relax.Call, block: Emitter) -> relax.Expr | None:
    """The sums in float32 where TVM's kernel would add up in 16 bits."""
    dtype = str(call.ty.dtype)
    if dtype not in ("float16", "bfloat16") or not is_float(call.args[0]):
        return None
    wide = block.emit(relax.op.astype(call.args[0], "float32"))
    sums = block.emit(relax.op.cumsum(wide, int(call.attrs.axis), exclusive=bool(call.attrs.exclusive)))
    return block.emit(relax.op.astype(sums, dtype))


EXPANSIONS: dict[str, Expansion] = {"relax.cumprod": _cumprod, "relax.cumsum": _cumsum}
