"""Coordinates of sparse tensors in another shape, and sums of what has one number."""

from typing import Any

from tvm import relax

from tvm_neuron.relay.ir.expr import const
from tvm_neuron.relay.op.declare import R, Tensor, operator, rank_of_data
from tvm_neuron.relay.op.elementwise import cast, number
from tvm_neuron.relay.op.reduce import max as greatest


@operator("sparse_reshape", outputs=2, ranks=lambda args, _: [int(args[0].ty.ndim), 1])
def sparse_reshape(sparse_indices: Tensor, prev_shape: Tensor, new_shape: Tensor) -> Any:
    """Coordinates as a reshape of the tensor makes them, and the new shape, in which one -1 is inferred."""
    before, after = _parts(prev_shape), _parts(new_shape)
    total = _product(before)
    known = _product([R.where(R.less(size, number(0, size)), number(-1, size), size) for size in after])
    inferred = R.floor_divide(total, R.negative(known))
    sizes = [R.where(R.less(size, number(0, size)), inferred, size) for size in after]
    flat: Any = None
    for at, step in enumerate(_steps(before)):
        rows = R.strided_slice(sparse_indices, [1], [at], [at + 1]) if sparse_indices.ty.ndim > 1 else sparse_indices
        part = R.multiply(R.reshape(rows, [-1]), R.astype(step, str(rows.ty.dtype)))
        flat = part if flat is None else R.add(flat, part)
    columns = []
    for step in _steps(sizes):
        columns.append(R.floor_divide(flat, R.astype(step, str(flat.ty.dtype))))
        flat = R.floor_mod(flat, R.astype(step, str(flat.ty.dtype)))
    places = R.stack(columns, 1) if sparse_indices.ty.ndim > 1 or len(columns) > 1 else columns[0]
    if len(before) == len(after):  # as Relay had it, also of coordinates that lie outside
        is_same = _product([R.astype(R.equal(*pair), "int32") for pair in zip(before, sizes, strict=True)])
        places = R.where(R.astype(is_same, "bool"), sparse_indices, places)
    return [places, R.concat(sizes, 0)]


def _parts(vector: Any) -> list[Any]:
    return [R.strided_slice(vector, [0], [at], [at + 1]) for at in range(int(vector.ty.shape[0]))]


def _product(factors: list[Any]) -> Any:
    result = factors[0]
    for factor in factors[1:]:
        result = R.multiply(result, factor)
    return result


def _steps(sizes: list[Any]) -> list[Any]:
    """How far apart in the flat tensor neighbours along each dimension are."""
    steps = [relax.const([1], str(sizes[0].ty.dtype))]
    for size in reversed(sizes[1:]):
        steps.append(R.multiply(steps[-1], size))
    return steps[::-1]


@operator("segment_sum", ranks=rank_of_data)
def _segment_sum(data: Tensor, segment_ids: Tensor, num_segments: int) -> Tensor:
    """The sums of the parts along the first dimension that have one number; `num_segments` of them."""
    rest = [int(dim) for dim in list(data.ty.shape)[1:]]
    count = int(segment_ids.ty.shape[0])
    rows = R.strided_slice(data, [0], [0], [count])
    places = R.reshape(R.astype(segment_ids, "int64"), [count, 1])
    return R.scatter_nd(R.zeros([num_segments, *rest], data.ty.dtype), places, rows, "add")


def segment_sum(data: Any, segment_ids: Any, num_segments: Any = None) -> Any:
    """The sums of the parts along the first dimension that have one number; by default up to the greatest number."""
    if num_segments is None:
        num_segments = greatest(cast(segment_ids, "int64")) + const(1, "int64")
    return _segment_sum(data, segment_ids, num_segments)
