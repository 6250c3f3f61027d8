"""Operators that change a tensor's shape or the order of its elements."""

from collections.abc import Sequence
from typing import Any

import tvm

from tvm_neuron.relay.ir.expr import TupleWrapper
from tvm_neuron.relay.op.declare import R, Tensor, Tensors, axis_of, fields, operator, rank_of_data, ranked_by
from tvm_neuron.relay.op.layouts import relayout
from tvm_neuron.relay.op.reshaping import reshaped


@operator("reshape", ranks=ranked_by("newshape"))
def reshape(data: Tensor, newshape: Sequence[int], allowzero: bool = False) -> Tensor:
    """The elements in a new shape; 0 copies a dimension, -1 is inferred, -2 to -4 as Relay had them."""
    return R.reshape(data, reshaped(list(data.ty.shape), newshape, allowzero))


@operator("contrib_reverse_reshape")
def reverse_reshape(data: Tensor, newshape: Sequence[int]) -> Tensor:
    """Reshape whose special numbers are read from the last dimension on."""
    shape = list(data.ty.shape)[::-1]
    return R.reshape(data, reshaped(shape, list(newshape)[::-1], allowzero=False)[::-1])


@operator("reshape_like")
def reshape_like(
    data: Tensor, shape_like: Tensor, lhs_begin: int = 0, lhs_end: int | None = None, rhs_begin: int = 0,
    rhs_end: int | None = None,
) -> Tensor:  # fmt: skip
    """The dimensions from `lhs_begin` to `lhs_end` replaced by those of another tensor."""
    shape, other = list(data.ty.shape), list(shape_like.ty.shape)
    begin, end = slice(lhs_begin, lhs_end).indices(len(shape))[:2]
    return R.reshape(data, [*shape[:begin], *other[rhs_begin:rhs_end], *shape[end:]])


@operator("expand_dims")
def expand_dims(data: Tensor, axis: int, num_newaxis: int = 1) -> Tensor:
    """`num_newaxis` dimensions of one element before `axis`."""
    at = axis if axis >= 0 else axis + int(data.ty.ndim) + 1
    return R.expand_dims(data, list(range(at, at + num_newaxis))) if num_newaxis else data


@operator("squeeze")
def squeeze(data: Tensor, axis: Sequence[int] | int | None = None) -> Tensor:
    """Without dimensions of one element."""
    if axis is None:
        return R.squeeze(data)
    named = [axis_of(each, int(data.ty.ndim)) for each in ([axis] if isinstance(axis, int) else axis)]
    for each in named:
        size = data.ty.shape[each]
        if isinstance(size, tvm.tirx.IntImm) and int(size) != 1:
            raise ValueError(f"axis {each} has {int(size)} elements, not one")
    return R.squeeze(data, named)


@operator("transpose")
def transpose(data: Tensor, axes: Sequence[int] | None = None) -> Tensor:
    """The dimensions in another order, reversed by default."""
    rank = int(data.ty.ndim)
    return R.permute_dims(data, [axis_of(axis, rank) for axis in axes] if axes else None)


@operator("layout_transform")
def layout_transform(data: Tensor, src_layout: str, dst_layout: str) -> Tensor:
    """From one layout such as `NCHW` to another such as `NHWC` or `NCHW4c`."""
    return relayout(data, src_layout, dst_layout)


@operator("concatenate")
def concatenate(data: Tensors, axis: int = 0) -> Tensor:
    """The tensors one after another along `axis`."""
    rank = int(data[0].ty.ndim)
    return R.concat(data, axis_of(axis, rank))


@operator("stack")
def stack(data: Tensors, axis: int = 0) -> Tensor:
    """The tensors one after another along a new axis."""
    return R.stack(data, axis)


@operator("split", outputs=lambda attrs: _parts(attrs["indices_or_sections"]))
def split(data: Tensor, indices_or_sections: int | Sequence[int], axis: int = 0) -> Any:
    """Parts along `axis`: as many equal ones, or cut at the positions given."""
    at = axis_of(axis, int(data.ty.ndim))
    if isinstance(indices_or_sections, int):
        size, count = data.ty.shape[at], indices_or_sections
        if isinstance(size, tvm.tirx.IntImm) and int(size) % count:
            raise ValueError(f"{int(size)} elements along axis {axis} can't be split into {count} equal parts")
    cuts = indices_or_sections if isinstance(indices_or_sections, int) else list(indices_or_sections)
    if not isinstance(data.ty.shape[at], tvm.tirx.IntImm):
        return _open_parts(data, at, cuts)
    if isinstance(cuts, list) and [0, *cuts, int(data.ty.shape[at])] != sorted([0, *cuts, int(data.ty.shape[at])]):
        raise ValueError(f"axis {axis} of {int(data.ty.shape[at])} elements can't be cut at {cuts}")
    return fields(R.split(data, cuts, at), _parts(indices_or_sections))


def _open_parts(data: Any, at: int, cuts: int | list[int]) -> list[Any]:
    """The parts of a dimension of open size, which is a multiple of their number, or larger than the last position."""
    size = data.ty.shape[at]
    ends = [size // cuts * (part + 1) for part in range(cuts)] if isinstance(cuts, int) else [*cuts, size]
    bounds = zip([0, *ends], ends, strict=False)
    return [R.strided_slice(data, [at], [begin], [end], assume_inbound=True) for begin, end in bounds]


def _parts(cuts: int | Sequence[int]) -> int:
    return cuts if isinstance(cuts, int) else len(cuts) + 1


@operator("broadcast_to", ranks=ranked_by("shape"))
def broadcast_to(data: Tensor, shape: Sequence[int]) -> Tensor:
    """The elements repeated to a shape."""
    return R.broadcast_to(data, list(shape))


@operator("broadcast_to_like")
def broadcast_to_like(data: Tensor, broadcast_type: Tensor) -> Tensor:
    """The elements repeated to the shape of another tensor."""
    return R.broadcast_to(data, broadcast_type.ty.shape)


@operator("collapse_sum_to")
def collapse_sum_to(data: Tensor, shape: Sequence[int]) -> Tensor:
    """Sums over what broadcasting from `shape` would have repeated."""
    return R.collapse_sum_to(data, list(shape))


@operator("collapse_sum_like")
def collapse_sum_like(data: Tensor, collapse_type: Tensor) -> Tensor:
    """Sums over what broadcasting from another tensor would have repeated."""
    return R.collapse_sum_like(data, collapse_type)


@operator("tile", ranks=rank_of_data)
def tile(data: Tensor, reps: Sequence[int]) -> Tensor:
    """The whole tensor repeated along each dimension."""
    return R.tile(data, [reps] if isinstance(reps, int) else list(reps))


@operator("repeat", ranks=rank_of_data)
def repeat(data: Tensor, repeats: int, axis: int | None = None) -> Tensor:
    """Each element repeated along `axis`."""
    return R.repeat(data, repeats, axis)


@operator("reverse")
def reverse(data: Tensor, axis: int) -> Tensor:
    """The elements along `axis` in reverse order."""
    return R.flip(data, axis)


@operator("reverse_sequence")
def reverse_sequence(data: Tensor, seq_lengths: Tensor, seq_axis: int = 1, batch_axis: int = 0) -> Tensor:
    """The first elements of each sequence, as many as its length says, in reverse order."""
    return R.reverse_sequence(data, seq_lengths, seq_axis, batch_axis)


@operator("meshgrid")
def _meshgrid(data: Tensors, indexing: str = "ij") -> Any:
    """Grids of the coordinates that the vectors hold."""
    order = [1, 0, *range(2, len(data))] if indexing == "xy" and len(data) > 1 else list(range(len(data)))
    sizes = [int(data[each].ty.shape[0]) if data[each].ty.ndim else 1 for each in order]
    return [
        R.broadcast_to(R.reshape(vector, [-1 if order[at] == number else 1 for at in range(len(data))]), sizes)
        for number, vector in enumerate(data)
    ]


def meshgrid(data: Sequence[Any], indexing: str = "ij") -> TupleWrapper:
    """Grids of the coordinates that the vectors hold, one a vector."""
    return TupleWrapper(_meshgrid(data, indexing), len(data))
