"""Operators that make tensors of nothing, or of no more than a shape."""

from math import prod

import numpy as np

from tvm_neuron.frontend.mxnet.attributes import Attributes
from tvm_neuron.frontend.mxnet.network import Network
from tvm_neuron.frontend.mxnet.operators.converter import Converter


def _filled(value: float | None) -> Converter:
    def convert(net: Network, at: Attributes) -> str:
        """Sizes of 0 are those that MXNet finds by what reads the tensor; here that repeats it."""
        number = at.number("value") if value is None else value
        shape = [size or 1 for size in at.sizes("shape", ())]
        return net.constant(np.full(shape, number, at.dtype("dtype", np.float32)))

    return convert


def _like(value: float) -> Converter:
    return lambda net, at, data: net.constant(np.full(net.shape(data), value, net.dtype(data)))


def _arange(net: Network, at: Attributes) -> str:
    at.only("infer_range", "False")
    start, stop, step = at.number("start"), at.maybe_number("stop"), at.number("step", 1)
    first, last = (0.0, start) if stop is None else (start, stop)
    numbers = np.arange(first, last, step).repeat(at.whole("repeat", 1))
    return net.constant(numbers, at.dtype("dtype", np.float32))


def _arange_like(net: Network, at: Attributes, data: str) -> str:
    start, step, times, axis = at.number("start", 0), at.number("step", 1), at.whole("repeat", 1), at.maybe("axis")
    shape = net.shape(data) if axis is None else (net.shape(data)[axis],)
    return net.constant((start + step * (np.arange(prod(shape)) // times)).reshape(shape), net.dtype(data))


CONVERTERS: dict[str, Converter] = {
    "_zeros": _filled(0), "_ones": _filled(1), "_full": _filled(None),
    "zeros_like": _like(0), "ones_like": _like(1),
    "_arange": _arange, "_contrib_arange_like": _arange_like,
}  # fmt: skip
