"""TopK, sort, argsort: rounds of the largest element and its first position, which is then taken out.

Equal elements come in the order of their positions.
"""

from math import prod

import numpy as np
from tvm import relax

from tvm_neuron.frontend.decompose.emitter import Emitter, Expansion
from tvm_neuron.frontend.decompose.extremes import positions_along, smallest_key
from tvm_neuron.frontend.decompose.shapes import KEPT_ELEMS, is_float, static_shape

MAX_ROUNDS = 16
"""A round takes about ten instructions over the whole tensor."""
_LARGEST = 3.0e38
_SORTED = ("float16", "float32", "float64", "int32", "int64")
"""The dtypes that TVM's sorting has; it takes bfloat16 too, and puts it in no order."""
_TOP = 1 << 63


def is_ranked_in_rounds(data: relax.Expr, rounds: int) -> bool:
    """Whether the largest `rounds` elements are found by rounds: few of them, in float tensors of moderate size.

    Rounds are in float32, which has not all digits of float64.
    """
    shape = static_shape(data)
    if str(data.ty.dtype) == "float64":
        return False
    return shape is not None and is_float(data) and prod(shape) <= KEPT_ELEMS and rounds <= MAX_ROUNDS


def _number(value: float) -> relax.Expr:
    return relax.const(value, "float32")


def _rank(
    data: relax.Expr, axis: int, rounds: int, is_largest: bool, block: Emitter
) -> tuple[relax.Var, relax.Var]:
    """The first `rounds` elements in order, and their positions as float32."""
    dtype, shape = str(data.ty.dtype), static_shape(data)
    assert shape is not None
    work = data if dtype == "float32" else block.emit(relax.op.astype(data, "float32"))
    work = work if is_largest else block.emit(relax.op.negative(work))
    places = positions_along(shape, axis)
    values, positions = [], []
    key_base: relax.Expr = places
    for turn in range(rounds):
        largest = block.emit(relax.op.max(work, axis, keepdims=True))
        below = block.emit(relax.op.sign(block.emit(relax.op.subtract(work, largest))))
        position = smallest_key(key_base, below, shape, axis, block)
        values.append(largest)
        positions.append(position)
        if turn == rounds - 1:
            break
        # other = 0 at the element just found, 1 elsewhere
        distance = block.emit(relax.op.subtract(places, position))
        other = block.emit(relax.op.abs(block.emit(relax.op.sign(distance))))
        # The element becomes -inf; should more be -inf from the start, those not yet taken go first.
        work = block.emit(relax.op.minimum(work, _bound(other, block)))
        taken = block.emit(relax.op.multiply(other, _number(-2.0 * shape[axis])))
        key_base = block.emit(relax.op.add(key_base, block.emit(relax.op.add(taken, _number(2.0 * shape[axis])))))
    found = block.emit(relax.op.concat(values, axis))
    found = found if is_largest else block.emit(relax.op.negative(found))
    found = found if dtype == "float32" else block.emit(relax.op.astype(found, dtype))
    return found, block.emit(relax.op.concat(positions, axis))


def _bound(other: relax.Var, block: Emitter) -> relax.Var:
    """-inf where `other` is 0 and inf where it is 1: it overflows on purpose, after a step that can't be folded."""
    centred = block.emit(relax.op.subtract(other, _number(0.5)))
    large = block.emit(relax.op.multiply(centred, _number(_LARGEST)))
    kept = block.emit(relax.op.maximum(large, _number(-_LARGEST)))
    return block.emit(relax.op.multiply(kept, _number(10.0)))


def _topk(call: relax.Call, block: Emitter) -> relax.Expr | None:
    data, rounds = call.args[0], int(call.attrs.k)
    if rounds < 1 or not is_ranked_in_rounds(data, rounds):
        return None if str(data.ty.dtype) in _SORTED else _topk_as_wider(call, block)
    axis = int(call.attrs.axis) % len(data.ty.shape)
    values, positions = _rank(data, axis, rounds, bool(call.attrs.largest), block)
    indices = block.emit(relax.op.astype(positions, call.attrs.dtype))
    return {"both": relax.Tuple([values, indices]), "values": values, "indices": indices}[call.attrs.ret_type]


def _topk_as_wider(call: relax.Call, block: Emitter) -> relax.Expr:
    data, attrs = call.args[0], call.attrs
    wider = _wider(data, block)
    found = block.emit(relax.op.topk(wider, attrs.k, attrs.axis, attrs.ret_type, attrs.largest, attrs.dtype))
    if attrs.ret_type == "indices":
        return found
    if attrs.ret_type == "values":
        return _narrowed(found, data, block)
    values, indices = (block.emit(relax.TupleGetItem(found, at)) for at in range(2))
    return relax.Tuple([_narrowed(values, data, block), indices])


def _sort(call: relax.Call, block: Emitter) -> relax.Expr | None:
    data, attrs = call.args[0], call.attrs
    ranked = _rank_all(call, block)
    if ranked is not None:
        return ranked[0]
    if str(data.ty.dtype) in _SORTED:
        return None
    return _narrowed(block.emit(relax.op.sort(_wider(data, block), attrs.axis, attrs.descending)), data, block)


def _argsort(call: relax.Call, block: Emitter) -> relax.Expr | None:
    data, attrs = call.args[0], call.attrs
    ranked = _rank_all(call, block)
    if ranked is not None:
        return block.emit(relax.op.astype(ranked[1], attrs.dtype))
    if str(data.ty.dtype) in _SORTED:
        return None
    return block.emit(relax.op.argsort(_wider(data, block), attrs.axis, attrs.descending, attrs.dtype))


def _wider(data: relax.Expr, block: Emitter) -> relax.Var:
    """The data in the same order in a dtype that TVM sorts; of unsigned 64 bits the first one is turned."""
    dtype = str(data.ty.dtype)
    if "float" in dtype:
        return block.emit(relax.op.astype(data, "float32"))
    turned = _turned(data, block) if dtype == "uint64" else data
    return block.emit(relax.op.astype(turned, "int64"))


def _narrowed(found: relax.Expr, data: relax.Expr, block: Emitter) -> relax.Var:
    """The inverse of `_wider`."""
    dtype = str(data.ty.dtype)
    narrow = block.emit(relax.op.astype(found, dtype))
    return _turned(narrow, block) if dtype == "uint64" else narrow


def _turned(data: relax.Expr, block: Emitter) -> relax.Var:
    return block.emit(relax.op.bitwise_xor(data, relax.const(np.array(_TOP, np.uint64), "uint64")))


def _rank_all(call: relax.Call, block: Emitter) -> tuple[relax.Var, relax.Var] | None:
    shape = static_shape(call.args[0])
    if not shape:
        return None
    axis = int(call.attrs.axis) % len(shape)
    if not is_ranked_in_rounds(call.args[0], shape[axis]):
        return None
    return _rank(call.args[0], axis, shape[axis], bool(call.attrs.descending), block)


EXPANSIONS: dict[str, Expansion] = {"relax.topk": _topk, "relax.sort": _sort, "relax.argsort": _argsort}
