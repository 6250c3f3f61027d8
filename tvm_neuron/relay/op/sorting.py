"""Sorting, and what follows from an order: the greatest elements, running sums, where a value belongs."""

from collections.abc import Callable
from typing import Any

import tvm

from tvm_neuron.relay.op.declare import R, Tensor, axis_of, fields, operator
from tvm_neuron.relay.op.reduce import is_bool


@operator("sort")
def sort(data: Tensor, axis: int = -1, is_ascend: bool = True) -> Tensor:
    """The elements along `axis` in order."""
    return R.sort(data, axis, not is_ascend)


@operator("argsort")
def argsort(data: Tensor, axis: int = -1, is_ascend: bool = True, dtype: str = "int32") -> Tensor:
    """The positions of the elements along `axis` in order."""
    found = R.argsort(data, axis, not is_ascend, dtype if dtype in ("int32", "int64") else "int32")
    return found if dtype in ("int32", "int64") else R.astype(found, dtype)


def _ranked(attrs: Any) -> int:
    return 2 if attrs["ret_type"] == "both" else 1


@operator("topk", outputs=_ranked, ranks=lambda args, attrs: [int(args[0].ty.ndim)] * _ranked(attrs))
def _topk(
    data: Tensor, k: int = 1, axis: int = -1, ret_type: str = "both", is_ascend: bool = False, dtype: str = "int32"
) -> Any:
    """The `k` greatest (or least) elements along `axis` and their positions; all of them for k < 1."""
    size = data.ty.shape[axis_of(axis, int(data.ty.ndim))]
    if isinstance(size, tvm.tirx.IntImm) and k > int(size):
        raise ValueError(f"k is {k}, and there are {int(size)} elements along axis {axis}")
    count = k if k >= 1 else int(size)
    values, positions = fields(R.topk(data, count, axis, "both", not is_ascend, "int32"), 2)
    positions = R.astype(positions, dtype) if dtype != "int32" else positions
    return {"both": [values, positions], "values": [values], "indices": [positions]}[ret_type]


def topk(
    data: Any, k: Any = 1, axis: int = -1, ret_type: str = "both", is_ascend: bool = False, dtype: str = "int32"
) -> Any:
    """The `k` greatest (or least) elements along `axis`, their positions, or both as a tuple."""
    found = _topk(data, k, axis, ret_type, is_ascend, dtype)
    return found if ret_type == "both" else found[0]


@operator("cumsum")
def cumsum(data: Tensor, axis: int | None = None, dtype: str | None = None, exclusive: bool | None = None) -> Tensor:
    """Running sums along `axis`, of the flat tensor for None; `exclusive` leaves each element out of its own."""
    return _running(R.cumsum, data, axis, dtype, exclusive)


@operator("cumprod")
def cumprod(data: Tensor, axis: int | None = None, dtype: str | None = None, exclusive: bool | None = None) -> Tensor:
    """Running products along `axis`, of the flat tensor for None; `exclusive` leaves each element out of its own."""
    return _running(R.cumprod, data, axis, dtype, exclusive)


@operator("searchsorted")
def searchsorted(sorted_sequence: Tensor, values: Tensor, right: bool = False, dtype: str = "int32") -> Tensor:
    """Where each value belongs in a sorted sequence, or in the one of its own row."""
    before = R.less_equal if right else R.less
    rows = R.expand_dims(sorted_sequence, -2)
    return R.sum(R.astype(before(rows, R.expand_dims(values, -1)), dtype), [-1])


def _running(
    function: Callable[..., Any], data: Any, axis: int | None, dtype: str | None, exclusive: bool | None
) -> Any:
    if not is_bool(data):
        return function(_flat(data, axis), axis or 0, dtype or None, bool(exclusive))
    numbers = function(_flat(R.astype(data, "int32"), axis), axis or 0, "int32", bool(exclusive))
    return R.astype(numbers, dtype or "bool")


def _flat(data: Any, axis: int | None) -> Any:
    return R.reshape(data, [-1]) if axis is None else data
