"""Operators that make tensors from nothing, or from another's shape."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from tvm import relax

from tvm_neuron.relay.op.declare import R, Tensor, axis_of, operator, ranked_by
from tvm_neuron.relay.op.elementwise import number


@operator("zeros", ranks=ranked_by("shape"))
def zeros(shape: Sequence[int], dtype: str) -> Tensor:
    """Zeros."""
    return R.zeros(_sizes(shape), dtype)


@operator("ones", ranks=ranked_by("shape"))
def ones(shape: Sequence[int], dtype: str) -> Tensor:
    """Ones."""
    return R.ones(_sizes(shape), dtype)


@operator("zeros_like")
def zeros_like(data: Tensor) -> Tensor:
    """Zeros in the shape and dtype of `data`."""
    return R.zeros_like(data)


@operator("ones_like")
def ones_like(data: Tensor) -> Tensor:
    """Ones in the shape and dtype of `data`."""
    return R.ones_like(data)


@operator("full", ranks=ranked_by("shape"))
def full(fill_value: Tensor, shape: Sequence[int] = (), dtype: str = "") -> Tensor:
    """A tensor of one value."""
    value = R.astype(fill_value, dtype) if dtype and dtype != str(fill_value.ty.dtype) else fill_value
    return R.broadcast_to(value, _sizes(shape))


@operator("full_like")
def full_like(data: Tensor, fill_value: Tensor) -> Tensor:
    """A tensor of one value in the shape and dtype of `data`."""
    return R.broadcast_to(R.astype(fill_value, data.ty.dtype), data.ty.shape)


@operator("shape_of")
def shape_of(data: Tensor, dtype: str = "int32") -> Tensor:
    """The shape as a tensor; it must be known at compile time."""
    return relax.const(np.array([int(dim) for dim in data.ty.shape], dtype))


@operator("ndarray_size")
def ndarray_size(data: Tensor, dtype: str = "int32") -> Tensor:
    """The number of elements; it must be known at compile time."""
    return relax.const(np.array(int(np.prod([int(dim) for dim in data.ty.shape])), dtype))


@operator("arange", ranks=lambda _args, _attrs: [1])
def _arange(start: float, stop: float, step: float, dtype: str = "float32") -> Tensor:
    """The numbers from `start` up to `stop` by `step`."""
    return relax.const(np.arange(start, stop, step).astype(dtype))


def arange(start: Any, stop: Any = None, step: Any = None, dtype: str = "float32") -> Any:
    """The numbers from `start` up to `stop` by `step`, or from 0 up to `start`."""
    first, last = (0, start) if stop is None else (start, stop)
    return _arange(first, last, 1 if step is None else step, dtype)


@operator("one_hot", ranks=lambda args, _: [int(args[0].ty.ndim) + 1])
def one_hot(indices: Tensor, on_value: Tensor, off_value: Tensor, depth: int, axis: int, dtype: str) -> Tensor:
    """`on_value` at the position that an index names along a new axis of `depth`, else `off_value`."""
    rank = int(indices.ty.ndim) + 1
    at = axis_of(axis, rank)
    positions = relax.const(np.arange(depth).reshape([-1 if each == at else 1 for each in range(rank)]), "int32")
    hit = R.equal(R.expand_dims(R.astype(indices, "int32"), at), positions)
    return R.where(hit, R.astype(on_value, dtype), R.astype(off_value, dtype))


@operator("trilu")
def trilu(data: Tensor, k: int, upper: bool = True) -> Tensor:
    """The triangle above (or below) diagonal `k`; zeros elsewhere."""
    rows, columns = (int(dim) for dim in list(data.ty.shape)[-2:])
    mask = np.triu(np.ones((rows, columns), bool), k) if upper else np.tril(np.ones((rows, columns), bool), k)
    return R.where(relax.const(mask), data, number(0, data))


def _sizes(shape: Any) -> list[int]:
    return [shape] if isinstance(shape, int) else list(shape)
