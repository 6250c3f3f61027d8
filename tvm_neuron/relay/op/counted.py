"""Operators whose results have as many elements as the data decide: they run on the CPU."""

from typing import Any

import tvm
from tvm import relax

from tvm_neuron.relay.op.declare import R, Tensor, operator


@operator("argwhere")
def argwhere(condition: Tensor) -> Tensor:
    """The positions of the elements that are not 0, one a row; int32."""
    rank = int(condition.ty.ndim)
    found = _of_size(R.nonzero(condition), [rank, tvm.tirx.Var("count", "int64")])
    return R.astype(R.permute_dims(found, [1, 0]), "int32")


@operator("unique", outputs=lambda attrs: 5 if attrs["return_counts"] else 4)
def unique(data: Tensor, is_sorted: bool = True, return_counts: bool = False) -> Any:
    """The different elements of a vector, where each is first, which each element is, their number, how often each is.

    They are in order, or in that in which they come first; all but themselves are int32.
    """
    bb = relax.BlockBuilder.current()
    whole = bb.emit(R.unique(data, is_sorted, True, True, True))
    count = tvm.tirx.Var("count", "int64")
    values, first, inverse, counts = (
        _of_size(bb.emit(relax.TupleGetItem(whole, index)), list(data.ty.shape) if index == 2 else [count])
        for index in range(4)
    )
    first, inverse, counts = (R.astype(each, "int32") for each in (first, inverse, counts))
    number = R.sum(R.ones_like(first), [0], True)
    return [values, first, inverse, number, *([counts] if return_counts else [])]


def _of_size(value: Any, shape: list[Any]) -> Any:
    """The tensor, whose shape is now known by name."""
    return relax.BlockBuilder.current().match_cast(value, relax.TensorType(shape, value.ty.dtype))
