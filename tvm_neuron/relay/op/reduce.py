"""Reductions: the attributes `axis` (all where None), `keepdims`, and `exclude` for all axes but those named."""

from collections.abc import Callable, Sequence
from math import prod as product
from typing import Any

import tvm
from tvm import relax

from tvm_neuron.relay.op.declare import R, Tensor, axis_of, operator
from tvm_neuron.relay.op.elementwise import number

Axes = int | Sequence[int] | None


def axes_of(data: Tensor, axis: Axes, exclude: bool = False) -> list[int]:
    """The axes as numbers from 0, in order.

    Raises ValueError: the tensor has no such axis.
    """
    rank = int(data.ty.ndim)
    named = range(rank) if axis is None else [axis] if isinstance(axis, int) else list(axis)
    found = {axis_of(each, rank) for each in named}
    if exclude:
        found = set(range(rank)) - found
    return sorted(found)


def _reduction(name: str, function: Callable[..., Any], meaning: str) -> Callable[..., Any]:
    def body(data: Tensor, axis: Axes = None, keepdims: bool = False, exclude: bool = False) -> Tensor:
        axes = axes_of(data, axis, exclude)
        return function(data, axes, keepdims) if axes else data

    body.__name__, body.__doc__ = name, f"{meaning} over the axes."
    return operator(name)(body)


def mean_of(data: Any, axes: Sequence[int], keepdims: bool) -> Any:
    """The mean, of 16 bits in float32: sums of many elements, and their number, are beyond float16.

    Of whole numbers it is the quotient of their sum, towards zero.

    Raises ValueError: of bools it is neither.
    """
    if is_bool(data):
        raise ValueError("its operand is bool, which has no mean: cast it to numbers first")
    if "int" in str(data.ty.dtype):
        count = count_of(data, axes, keepdims)
        return R.divide(R.sum(data, axes, keepdims), number(count, data) if isinstance(count, int) else count)
    if str(data.ty.dtype) != "float16":
        return R.mean(data, axes, keepdims)
    return R.astype(R.mean(R.astype(data, "float32"), axes, keepdims), "float16")


def count_of(data: Any, axes: Sequence[int], keepdims: bool) -> Any:
    """How many elements are reduced to one: a number, or a tensor in the dtype of the data where only that knows."""
    sizes = [data.ty.shape[each] for each in axes]
    if [size for size in sizes if not isinstance(size, tvm.tirx.IntImm)]:
        return R.sum(R.ones_like(data), axes, keepdims)
    return product(int(size) for size in sizes)


def is_bool(data: Any) -> bool:
    """Whether its elements are bools, which TVM's kernels neither order nor sum up."""
    return str(data.ty.dtype) == "bool"


def _of_bools(function: Callable[..., Any]) -> Callable[..., Any]:
    def reduced(data: Any, axes: Sequence[int], keepdims: bool) -> Any:
        return R.astype(function(R.astype(data, "int32"), axes, keepdims), "bool")

    return reduced


def _also_of_bools(function: Callable[..., Any]) -> Callable[..., Any]:
    def reduced(data: Any, axes: Sequence[int], keepdims: bool) -> Any:
        return (_of_bools(function) if is_bool(data) else function)(data, axes, keepdims)

    return reduced


sum = _reduction("sum", R.sum, "The sum")  # noqa: A001
prod = _reduction("prod", R.prod, "The product")
max = _reduction("max", _also_of_bools(R.max), "The greatest element")  # noqa: A001
min = _reduction("min", _also_of_bools(R.min), "The least element")  # noqa: A001
mean = _reduction("mean", mean_of, "The mean")
all = _reduction("all", _of_bools(R.min), "Whether all are true")  # noqa: A001
any = _reduction("any", _of_bools(R.max), "Whether any is true")  # noqa: A001


def _position(name: str, function: Callable[..., Any], meaning: str) -> Callable[..., Any]:
    def body(
        data: Tensor, axis: Axes = None, keepdims: bool = False, exclude: bool = False, select_last_index: bool = False
    ) -> Tensor:
        axes = axes_of(data, axis, exclude)
        data = R.astype(data, "int32") if is_bool(data) else data
        shape, kept = list(data.ty.shape), [each for each in range(int(data.ty.ndim)) if each not in axes]
        moved = data if len(axes) == 1 else R.reshape(
            R.permute_dims(data, [*kept, *axes]), [*(shape[each] for each in kept), -1]
        )  # fmt: skip
        at = axes[0] if len(axes) == 1 else len(kept)
        if select_last_index:
            moved = R.flip(moved, at)
        found = R.astype(function(moved, at, False), "int32")
        if select_last_index:
            count = 1
            for each in axes:
                count *= int(shape[each])
            found = R.subtract(relax.const(count - 1, "int32"), found)
        return R.reshape(found, [1 if each in axes else dim for each, dim in enumerate(shape)]) if keepdims else found

    body.__name__, body.__doc__ = name, f"Where {meaning} element is, the first one or the last; int32."
    return operator(name)(body)


argmax = _position("argmax", R.argmax, "the greatest")
argmin = _position("argmin", R.argmin, "the least")


def spread(data: Tensor, axes: list[int], keepdims: bool, unbiased: bool, mean: Tensor | None = None) -> Tensor:
    """The variance over `axes`."""
    off = R.subtract(data, mean_of(data, axes, True) if mean is None else mean)
    biased = mean_of(R.multiply(off, off), axes, keepdims)
    if not unbiased:
        return biased
    count = count_of(data, axes, keepdims)
    if isinstance(count, int):
        return R.multiply(biased, number(count / (count - 1), data))
    return R.multiply(biased, R.divide(count, R.subtract(count, number(1, count))))


@operator("variance")
def variance(
    data: Tensor, axis: Axes = None, keepdims: bool = False, exclude: bool = False, unbiased: bool = False,
    with_mean: Tensor = None,
) -> Tensor:  # fmt: skip
    """The variance over the axes; `unbiased` divides by one less than the count."""
    return spread(data, axes_of(data, axis, exclude), keepdims, unbiased, with_mean)


@operator("std")
def std(
    data: Tensor, axis: Axes = None, keepdims: bool = False, exclude: bool = False, unbiased: bool = False
) -> Tensor:
    """The standard deviation over the axes."""
    return R.sqrt(spread(data, axes_of(data, axis, exclude), keepdims, unbiased))


@operator("mean_variance", outputs=2)
def mean_variance(
    data: Tensor, axis: Axes = None, keepdims: bool = False, exclude: bool = False, unbiased: bool = False
) -> Any:
    """The mean and the variance over the axes."""
    axes = axes_of(data, axis, exclude)
    return [mean_of(data, axes, keepdims), spread(data, axes, keepdims, unbiased)]


@operator("mean_std", outputs=2)
def mean_std(data: Tensor, axis: Axes = None, keepdims: bool = False, exclude: bool = False) -> Any:
    """The mean and the standard deviation over the axes."""
    axes = axes_of(data, axis, exclude)
    return [mean_of(data, axes, keepdims), R.sqrt(spread(data, axes, keepdims, unbiased=False))]


@operator("logsumexp")
def logsumexp(data: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The logarithm of the sum of exponentials over the axes."""
    axes = axes_of(data, axis)
    greatest = R.max(data, axes, True)
    total = R.log(R.sum(R.exp(R.subtract(data, greatest)), axes, keepdims))
    return R.add(total, greatest if keepdims else R.squeeze(greatest, axes))
