"""Operators that Relax has and TVM's legalisation doesn't know, as those that it knows: pixel_shuffle, ewise_fma,
splits of which a part is empty, divisions by the number 0, unsigned numbers' negatives.
"""

import math
from itertools import pairwise

import tvm
from tvm import relax

from tvm_neuron.frontend.decompose.emitter import Emitter, Expansion
from tvm_neuron.frontend.decompose.shapes import static_shape


def _pixel_shuffle(call: relax.Call, block: Emitter) -> relax.Var:
    """[..., C * r * r, H, W] as [..., C, H * r, W * r]."""
    (data,), factor = call.args, int(call.attrs.upscale_factor)
    *front, channels, height, width = data.ty.shape
    at = len(front)
    apart = relax.op.reshape(data, [*front, channels // factor**2, factor, factor, height, width])
    order = [*range(at + 1), at + 3, at + 1, at + 4, at + 2]
    turned = block.emit(relax.op.permute_dims(block.emit(apart), order))
    return block.emit(relax.op.reshape(turned, [*front, channels // factor**2, height * factor, width * factor]))


def _fused_multiply_add(call: relax.Call, block: Emitter) -> relax.Var:
    left, right, addend = call.args
    return block.emit(relax.op.add(block.emit(relax.op.multiply(left, right)), addend))


def _split(call: relax.Call, block: Emitter) -> relax.Expr | None:
    data, indices = call.args[0], call.attrs.indices_or_sections
    shape = static_shape(data)
    if shape is None or isinstance(indices, int | tvm.tirx.IntImm):
        return None
    axis = int(call.attrs.axis) % len(shape)
    ends = [0, *(min(int(index), shape[axis]) for index in indices), shape[axis]]
    if all(begin < end for begin, end in pairwise(ends)) or ends != sorted(ends):
        return None
    parts = []
    for begin, end in pairwise(ends):
        sizes = (*shape[:axis], end - begin, *shape[axis + 1 :])
        part = relax.op.strided_slice(data, [axis], [begin], [end])
        parts.append(block.emit(part if 0 not in sizes else relax.op.zeros(sizes, data.ty.dtype)))
    return relax.Tuple(parts)


def _divide(call: relax.Call, block: Emitter) -> relax.Var | None:
    """By 0 as times infinity of its sign, which is the same of every float."""
    divisor = call.args[1]
    if not isinstance(divisor, tvm.ir.GenericConst) or "float" not in str(divisor.ty.dtype) or divisor.ty.ndim:
        return None
    number = float(divisor.value.numpy())
    if number:
        return None
    infinity = relax.const(math.copysign(math.inf, number), divisor.ty.dtype)
    return block.emit(relax.op.multiply(call.args[0], infinity))


def _negative(call: relax.Call, block: Emitter) -> relax.Var | None:
    """Of unsigned numbers, for which TVM multiplies by a -1 that they don't have."""
    return _complement(call.args[0], block) if _is_unsigned(call.args[0]) else None


def _subtract(call: relax.Call, block: Emitter) -> relax.Var | None:
    """From an unsigned 0: TVM takes 0 - x of 32 and 64 bits for 0, as if there was nothing below."""
    start = call.args[0]
    if not isinstance(start, tvm.ir.GenericConst) or not _is_unsigned(start) or start.value.numpy().any():
        return None
    found = _complement(call.args[1], block)
    return found if not start.ty.ndim else block.emit(relax.op.broadcast_to(found, call.ty.shape))


def _is_unsigned(value: relax.Expr) -> bool:
    return str(value.ty.dtype).startswith("uint")


def _complement(value: relax.Expr, block: Emitter) -> relax.Var:
    """What is missing to 0, in as many bits."""
    turned = block.emit(relax.op.bitwise_not(value))
    return block.emit(relax.op.add(turned, relax.const(1, value.ty.dtype)))


EXPANSIONS: dict[str, Expansion] = {
    "relax.divide": _divide,
    "relax.negative": _negative,
    "relax.nn.pixel_shuffle": _pixel_shuffle,
    "relax.ewise_fma": _fused_multiply_add,
    "relax.split": _split,
    "relax.subtract": _subtract,
}
