"""ScatterND, ScatterElements: one update along a dimension is a choice for each element, by where that lies.

So is a step of a decoder that is written into keys and values of fixed size. The place is read from a table of places,
because such reads are checked: a place outside is an error, and negative ones count from the end.
"""

from functools import reduce
from math import prod

import numpy as np
from tvm import relax

from tvm_neuron.frontend.decompose.emitter import Emitter, Expansion
from tvm_neuron.frontend.decompose.extremes import positions_along
from tvm_neuron.frontend.decompose.shapes import KEPT_ELEMS, static_shape


def _scatter_nd(call: relax.Call, block: Emitter) -> relax.Expr | None:
    data, indices, updates = call.args
    shape, places = static_shape(data), static_shape(indices)
    if call.attrs.reduction != "update" or shape is None or places is None or prod(places[:-1]) != 1:
        return None
    depth = places[-1]
    if not 0 < depth <= len(shape) or max(shape[:depth]) > KEPT_ELEMS:
        return None
    flat = block.emit(relax.op.reshape(indices, [depth]))
    hits = []
    for axis in range(depth):
        place = block.emit(relax.op.take(flat, relax.const([axis], "int64"), 0, mode="clip"))
        hits.append(_is_there(shape, axis, block.emit(relax.op.reshape(place, [1] * len(shape))), block))
    hit = reduce(lambda one, other: block.emit(relax.op.logical_and(one, other)), hits)
    update = block.emit(relax.op.reshape(updates, [1] * depth + list(shape[depth:])))
    return block.emit(relax.op.where(hit, update, data))


def _scatter_elements(call: relax.Call, block: Emitter) -> relax.Expr | None:
    data, places, updates = call.args
    shape, extents = static_shape(data), static_shape(places)
    if call.attrs.reduction != "update" or shape is None or extents is None:
        return None
    axis = int(call.attrs.axis) % len(shape)
    if extents != (*shape[:axis], 1, *shape[axis + 1 :]) or max(shape[axis], prod(extents)) > KEPT_ELEMS:
        return None
    return block.emit(relax.op.where(_is_there(shape, axis, places, block), updates, data))


def _is_there(shape: tuple[int, ...], axis: int, places: relax.Expr, block: Emitter) -> relax.Var:
    """Which elements lie at these places along an axis; both as float32, exact in tensors of so many elements."""
    table = relax.const(np.arange(shape[axis]), "float32")
    found = block.emit(relax.op.take(table, places, 0, mode="fast"))
    return block.emit(relax.op.equal(positions_along(shape, axis), found))


EXPANSIONS: dict[str, Expansion] = {
    "relax.scatter_nd": _scatter_nd,
    "relax.scatter_elements": _scatter_elements,
}
