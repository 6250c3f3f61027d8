"""Pooling: of windows, of as many windows as the output has elements, and of all."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tvm import relax

from tvm_neuron.relay.op.convolution import Sizes, listed, pads
from tvm_neuron.relay.op.declare import R, Tensor, operator
from tvm_neuron.relay.op.layouts import relayout
from tvm_neuron.relay.op.reduce import mean_of

_SPATIAL = {1: "W", 2: "HW", 3: "DHW"}
_MAX = {1: R.nn.max_pool1d, 2: R.nn.max_pool2d, 3: R.nn.max_pool3d}
_AVG = {1: R.nn.avg_pool1d, 2: R.nn.avg_pool2d, 3: R.nn.avg_pool3d}


def _max_pool(count: int) -> Callable[..., Any]:
    ones = (1,) * count

    def body(
        data: Tensor, pool_size: Sizes = ones, strides: Sizes = ones, dilation: Sizes = ones,
        padding: Sizes = (0,) * count, layout: str = f"NC{_SPATIAL[count]}", out_layout: str = "",
        ceil_mode: bool = False,
    ) -> Tensor:  # fmt: skip
        plain = f"NC{_SPATIAL[count]}"
        given = relayout(data, layout, plain)
        pooled = _MAX[count](
            given, listed(pool_size, count), listed(strides, count), pads(padding, count), listed(dilation, count),
            ceil_mode, layout=plain,
        )  # fmt: skip
        return relayout(pooled, plain, out_layout or layout)

    body.__name__, body.__doc__ = f"max_pool{count}d", "The greatest element of each window."
    return operator(f"nn.max_pool{count}d")(body)


def _avg_pool(count: int) -> Callable[..., Any]:
    ones = (1,) * count

    def body(
        data: Tensor, pool_size: Sizes = ones, strides: Sizes = ones, dilation: Sizes = ones,
        padding: Sizes = (0,) * count, layout: str = f"NC{_SPATIAL[count]}", out_layout: str = "",
        ceil_mode: bool = False, count_include_pad: bool = False,
    ) -> Tensor:  # fmt: skip
        plain = f"NC{_SPATIAL[count]}"
        given = relayout(data, layout, plain)
        pooled = _AVG[count](
            given, listed(pool_size, count), listed(strides, count), pads(padding, count), listed(dilation, count),
            ceil_mode, count_include_pad, layout=plain,
        )  # fmt: skip
        return relayout(pooled, plain, out_layout or layout)

    body.__name__, body.__doc__ = f"avg_pool{count}d", "The mean of each window."
    return operator(f"nn.avg_pool{count}d")(body)


def _global(count: int, kind: str, reduce: Callable[..., Any]) -> Callable[..., Any]:
    def body(data: Tensor, layout: str = f"NC{_SPATIAL[count]}", out_layout: str = "") -> Tensor:
        axes = [at for at, letter in enumerate(layout) if letter in _SPATIAL[count]]
        return relayout(reduce(data, axes, True), layout, out_layout or layout)

    body.__name__, body.__doc__ = f"global_{kind}_pool{count}d", f"The {kind} over all spatial dimensions."
    return operator(f"nn.global_{kind}_pool{count}d")(body)


def _adaptive(count: int, kind: str, reduce: Callable[..., Any]) -> Callable[..., Any]:
    def body(
        data: Tensor, output_size: Sizes | None = None, layout: str = f"NC{_SPATIAL[count]}", out_layout: str = ""
    ) -> Tensor:
        places = [layout.index(letter) for letter in _SPATIAL[count]]
        sizes = listed(output_size, count) if output_size else [int(data.ty.shape[at]) for at in places]
        is_rounded = reduce is mean_of and "int" in str(data.ty.dtype)  # once, of the whole sum
        result, counts = data, np.ones([1] * len(layout))
        for at, size in zip(places, sizes, strict=True):
            starts, ends = _bounds(int(data.ty.shape[at]), size)
            counts = counts * (ends - starts).reshape([-1 if each == at else 1 for each in range(len(layout))])
            result = _windows(result, at, size, R.sum if is_rounded else reduce)
        result = R.divide(result, relax.const(counts, str(data.ty.dtype))) if is_rounded else result
        return relayout(result, layout, out_layout or layout)

    body.__name__, body.__doc__ = f"adaptive_{kind}_pool{count}d", f"The {kind} of as many windows as the output has."
    return operator(f"nn.adaptive_{kind}_pool{count}d")(body)


def _bounds(length: int, size: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Where the windows begin and end."""
    return np.arange(size) * length // size, -(-(np.arange(size) + 1) * length // size)


def _windows(data: Any, at: int, size: int, reduce: Callable[..., Any]) -> Any:
    """One dimension reduced to `size` windows, which overlap where it is no multiple."""
    length = int(data.ty.shape[at])
    shape = list(data.ty.shape)
    if length % size == 0:
        return reduce(R.reshape(data, [*shape[:at], size, length // size, *shape[at + 1 :]]), [at + 1], False)
    starts, ends = _bounds(length, size)
    parts = [
        reduce(R.strided_slice(data, [at], [int(start)], [int(end)]), [at], True)
        for start, end in zip(starts, ends, strict=True)
    ]
    return R.concat(parts, at)


max_pool1d, max_pool2d, max_pool3d = map(_max_pool, (1, 2, 3))
avg_pool1d, avg_pool2d, avg_pool3d = map(_avg_pool, (1, 2, 3))
global_max_pool1d, global_max_pool2d, global_max_pool3d = (_global(count, "max", R.max) for count in (1, 2, 3))
global_avg_pool1d, global_avg_pool2d, global_avg_pool3d = (_global(count, "avg", mean_of) for count in (1, 2, 3))
adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = (_adaptive(c, "max", R.max) for c in (1, 2, 3))
adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = (_adaptive(c, "avg", mean_of) for c in (1, 2, 3))
