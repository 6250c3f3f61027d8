"""Operators that choose elements by position, or write to positions."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tvm
from tvm import relax

from tvm_neuron.relay.op.declare import OptionalTensor, R, Tensor, Tensors, axis_of, operator, rank_of_data, ranked_by
from tvm_neuron.relay.op.elementwise import number


@operator("take")
def take(data: Tensor, indices: Tensor, axis: int | None = None, batch_dims: int = 0, mode: str = "clip") -> Tensor:
    """The elements along `axis` (of the flat tensor for None) that the indices name.

    `mode` says what an index outside does: `clip` takes the nearest element, `wrap` counts from the other end, `fast`
    trusts the indices.
    """
    flat = R.reshape(data, [-1]) if axis is None else data
    rank = 1 if axis is None else int(data.ty.ndim)
    at = axis_of(axis or 0, rank)
    wanted = _inside(indices, flat.ty.shape[at], mode)
    if batch_dims:
        return _batched(flat, wanted, at, batch_dims % int(indices.ty.ndim))
    return R.take(flat, wanted, at)


def _inside(indices: Any, dim: Any, mode: str) -> Any:
    if not isinstance(dim, tvm.tirx.IntImm):
        return indices  # what is known only when the model runs is checked then
    size = int(dim)
    signed = indices if str(indices.ty.dtype).startswith("int") else R.astype(indices, "int64")
    signed = (signed)
    if mode == "wrap":
        return R.floor_mod(signed, number(size, signed))
    if mode == "clip":
        return R.minimum(R.maximum(signed, number(0, signed)), number(size - 1, signed))
    return signed


def _batched(data: Any, indices: Any, axis: int, batch: int) -> Any:
    """The first `batch` dimensions of both go together: each chooses from its own part."""
    shape = [int(dim) for dim in data.ty.shape]
    wanted = [int(dim) for dim in indices.ty.shape]
    groups = int(np.prod(shape[:batch]))
    order = [*range(batch), axis, *(each for each in range(batch, len(shape)) if each != axis)]
    rows = R.reshape(R.permute_dims(data, order), [groups * shape[axis], -1])
    offsets = np.arange(groups).reshape([*shape[:batch], *[1] * (len(wanted) - batch)]) * shape[axis]
    found = R.take(rows, R.reshape(R.add(indices, relax.const(offsets, str(indices.ty.dtype))), [-1]), 0)
    rest = [shape[each] for each in order[batch + 1 :]]
    laid = R.reshape(found, [*wanted, *rest])
    # the chosen dimensions take the place of `axis`
    before = axis - batch
    count = len(wanted)
    places = [
        *range(batch), *range(count, count + before), *range(batch, count), *range(count + before, count + len(rest))
    ]  # fmt: skip
    return R.permute_dims(laid, places)


@operator("gather")
def gather(data: Tensor, axis: int, indices: Tensor) -> Tensor:
    """The elements along `axis` that the indices name, one for each index."""
    return R.gather_elements(data, indices, axis)


@operator("gather_nd")
def gather_nd(data: Tensor, indices: Tensor, batch_dims: int = 0, index_rank: int | None = None) -> Tensor:
    """The elements at coordinates that lie along the first dimension of `indices`."""
    rank = int(indices.ty.ndim)
    last = R.permute_dims(indices, [*range(1, rank), 0])
    return R.gather_nd(data, R.astype(last, "int64"), batch_dims)


@operator("scatter_elements")
def scatter_elements(
    data: Tensor, indices: Tensor, updates: Tensor, axis: int = 0, reduction: str = "update"
) -> Tensor:
    """`data` with elements along `axis` replaced, or added to and the like, where the indices say."""
    return R.scatter_elements(data, R.astype(indices, "int64"), updates, axis, reduction)


@operator("scatter_nd")
def scatter_nd(data: Tensor, indices: Tensor, updates: Tensor, mode: str = "update") -> Tensor:
    """`data` with elements replaced, or added to, at coordinates along the first dimension of `indices`."""
    rank = int(indices.ty.ndim)
    last = R.permute_dims(indices, [*range(1, rank), 0])
    return R.scatter_nd(data, R.astype(last, "int64"), updates, mode)


@operator("strided_slice", ranks=rank_of_data)
def strided_slice(
    data: Tensor, begin: Sequence[int], end: Sequence[int], strides: Sequence[int] | int | None = None,
    axes: Sequence[int] | None = None, slice_mode: str = "end",
) -> Tensor:  # fmt: skip
    """From `begin` to `end` by `strides` along each axis; in mode `size`, `end` counts elements, -1 for all."""
    rank = int(data.ty.ndim)
    begin, end = _listed(begin), _listed(end)
    count = min(len(begin), len(end))  # what one of them leaves out is whole
    named = [axis_of(each, rank) for each in axes][:count] if axes else list(range(count))
    begin, end = begin[:count], end[:count]
    if slice_mode == "size":
        sizes = [data.ty.shape[each] for each in named]
        end = [size if wanted == -1 else at + wanted for at, wanted, size in zip(begin, end, sizes, strict=True)]
        return R.strided_slice(data, named, begin, end)
    return R.strided_slice(data, named, begin, end, _steps(strides, count))


def _steps(strides: Sequence[int] | int | None, count: int) -> list[int]:
    steps = [1] if strides is None else _listed(strides)
    return steps * count if len(steps) == 1 else [*steps, *[1] * count][:count]


def _listed(value: Any) -> list[int]:
    return [value] if isinstance(value, int) else list(value)


@operator("slice_like")
def slice_like(data: Tensor, shape_like: Tensor, axes: Sequence[int] | None = None) -> Tensor:
    """The first elements along each axis, as many as another tensor has."""
    rank = int(data.ty.ndim)
    named = [axis_of(each, rank) for each in axes] if axes else list(range(int(shape_like.ty.ndim)))
    ends = [shape_like.ty.shape[each] for each in named]
    is_open = any(not isinstance(data.ty.shape[each], tvm.tirx.IntImm) for each in named)
    return R.strided_slice(data, named, [0] * len(named), ends, assume_inbound=is_open)


@operator("strided_set")
def strided_set(
    data: Tensor, v: Tensor, begin: Sequence[int], end: Sequence[int], strides: Sequence[int] | None = None
) -> Tensor:
    """`data` with the slice that `strided_slice` would read replaced by `v`."""
    shape = [int(dim) for dim in data.ty.shape]
    begin, end = _listed(begin), _listed(end)
    picked = tuple(slice(*bounds) for bounds in zip(begin, end, _steps(strides, len(begin)), strict=True))
    places = np.arange(int(np.prod(shape))).reshape(shape)[picked]
    flat = R.scatter_elements(
        R.reshape(data, [-1]), relax.const(places.ravel().astype("int64")), R.reshape(v, [-1]), 0
    )  # fmt: skip
    return R.reshape(flat, shape)


@operator("sequence_mask")
def sequence_mask(data: Tensor, valid_length: Tensor, mask_value: float = 0, axis: int = 0) -> Tensor:
    """The first elements of each sequence, `mask_value` after its length; `axis` 0 or 1, the other one is the batch."""
    rank = int(data.ty.ndim)
    at = axis_of(axis, rank)
    length = int(data.ty.shape[at])
    positions = np.arange(length).reshape([-1 if each == at else 1 for each in range(rank)])
    limits = R.reshape(valid_length, [-1 if each == 1 - at else 1 for each in range(rank)])
    keep = R.less(relax.const(positions, str(valid_length.ty.dtype)), limits)
    return R.where(keep, data, number(mask_value, data))


@operator("unravel_index")
def unravel_index(indices: Tensor, shape: Tensor) -> Tensor:
    """Flat positions as coordinates in a tensor of `shape`, along a new first dimension."""
    parts, rest = [], indices
    for size in reversed(_sizes(shape, indices)):
        parts.append(R.floor_mod(rest, size))
        rest = R.floor_divide(rest, size)
    return R.stack(parts[::-1], 0)


def _sizes(shape: Any, like: Any) -> list[Any]:
    """The elements of a vector, as numbers where it is a constant."""
    if isinstance(shape, tvm.ir.GenericConst):
        return [number(each, like) for each in np.atleast_1d(shape.value.numpy())]
    vector = R.astype(shape, str(like.ty.dtype))
    return [R.reshape(R.strided_slice(vector, [0], [at], [at + 1]), []) for at in range(int(shape.ty.shape[0]))]


@operator("adv_index")
def adv_index(inputs: Tensors) -> Tensor:
    """`data[indices...]` as NumPy means it: index tensors are broadcast to each other."""
    data, *indices = inputs
    shape = np.broadcast_shapes(*([int(dim) for dim in each.ty.shape] for each in indices))
    spread = [R.astype(R.broadcast_to(each, list(shape)), "int64") for each in indices]
    return R.gather_nd(data, R.stack(spread, len(shape)), 0)


@operator("matrix_set_diag")
def matrix_set_diag(data: Tensor, diagonal: Tensor, k: Any = 0, align: str = "RIGHT_LEFT") -> Tensor:
    """Matrices with the diagonals from `k[0]` to `k[1]` replaced."""
    low, high = (k, k) if isinstance(k, int) else k
    *batch, rows, columns = (int(dim) for dim in data.ty.shape)
    count = high - low + 1
    width = int(diagonal.ty.shape[-1])
    where = np.zeros((rows, columns), bool)
    source = np.zeros((rows, columns), "int64")
    for offset in range(low, high + 1):
        length = min(rows + min(offset, 0), columns - max(offset, 0))
        is_right = align.split("_")[0 if offset >= 0 else 1] == "RIGHT"
        shift = width - length if is_right else 0
        for step in range(length):
            row, column = step - min(offset, 0), step + max(offset, 0)
            where[row, column] = True
            source[row, column] = (high - offset) * width + shift + step
    flat = R.reshape(diagonal, [*batch, count * width])
    placed = R.reshape(R.take(flat, relax.const(source.ravel()), len(batch)), [*batch, rows, columns])
    return R.where(relax.const(where), placed, data)


@operator("sparse_to_dense", ranks=ranked_by("output_shape"))
def sparse_to_dense(
    sparse_indices: Tensor, output_shape: Sequence[int], sparse_values: Tensor, default_value: OptionalTensor = None
) -> Tensor:
    """A tensor of `default_value` with values at the positions given."""
    shape = [output_shape] if isinstance(output_shape, int) else list(output_shape)
    base = number(0, sparse_values) if default_value is None else default_value
    rank = int(sparse_indices.ty.ndim)
    places = R.reshape(sparse_indices, [-1, 1]) if rank < 2 else sparse_indices
    count = int(sparse_indices.ty.shape[0]) if rank else 1
    values = R.broadcast_to(sparse_values, [count])
    return R.scatter_nd(R.broadcast_to(base, shape), R.astype(places, "int64"), values)


@operator("invert_permutation")
def invert_permutation(data: Tensor) -> Tensor:
    """Where each number stands in a permutation."""
    size = int(data.ty.shape[0])
    counts = relax.const(np.arange(size), str(data.ty.dtype))
    return R.scatter_elements(R.zeros([size], data.ty.dtype), R.astype(data, "int64"), counts, 0)
