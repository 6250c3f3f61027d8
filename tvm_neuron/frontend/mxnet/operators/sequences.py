"""Operators on sequences of different lengths, the batch beside the steps."""

from collections.abc import Sequence

import numpy as np

from tvm_neuron.frontend.mxnet.attributes import Attributes
from tvm_neuron.frontend.mxnet.network import Network
from tvm_neuron.frontend.mxnet.operators.converter import Converter
from tvm_neuron.frontend.refused import RefusedError


def positions_before(net: Network, data: str, axis: int, length: str, along: Sequence[int]) -> str:
    """Whether each position on `axis` comes before the length, whose dimensions are those of `data` `along`."""
    rank, steps = net.rank(data), net.shape(data)[axis]
    positions = np.arange(steps).reshape([-1 if each == axis else 1 for each in range(rank)])
    sizes = [1] * rank
    for each, size in zip(along, net.shape(length), strict=True):
        sizes[each] = size
    return str(net.add("Less", net.constant(positions, np.int64), net.reshaped(net.cast(length, np.int64), sizes)))


def _mask(net: Network, at: Attributes, data: str, length: str = "") -> str:
    axis, value = at.whole("axis", 0), at.number("value", 0)
    if not _has_length(at, length):
        return data
    is_within = positions_before(net, data, axis, length, [1 - axis])
    return str(net.add("Where", is_within, data, net.number(value, data)))


def _last(net: Network, at: Attributes, data: str, length: str = "") -> str:
    axis = at.whole("axis", 0)
    has_length = _has_length(at, length)
    steps_first = net.moved(data, axis, 0)
    steps, batch, *_ = net.shape(steps_first)
    rest = net.shape(steps_first)[2:]
    if not has_length:
        return net.reshaped(net.sliced(steps_first, 0, steps - 1, steps), (batch, *rest))
    row = net.add("Sub", net.cast(length, np.int64), net.constant(1, np.int64))
    return _gathered(net, steps_first, net.reshaped(row, [1, batch]), (batch, *rest))


def _reversed(net: Network, at: Attributes, data: str, length: str = "") -> str:
    at.only("axis", "0")
    if not _has_length(at, length):
        return net.sliced(data, 0, None, None, -1)
    steps, batch, *_ = net.shape(data)
    step = net.constant(np.arange(steps).reshape(-1, 1), np.int64)
    whole = net.reshaped(net.cast(length, np.int64), [1, batch])
    from_end = net.add("Sub", net.add("Sub", whole, net.constant(1, np.int64)), step)
    return _gathered(net, data, net.add("Where", net.add("Less", step, whole), from_end, step), net.shape(data))


def _gathered(net: Network, data: str, rows: str, shape: Sequence[int]) -> str:
    """Of [T, N, ...] the elements at [rows[i, n], n, ...]."""
    sizes = (net.shape(rows)[0], *net.shape(data)[1:])
    everywhere = net.expanded(net.reshaped(rows, [*net.shape(rows), *[1] * (net.rank(data) - 2)]), sizes)
    return net.reshaped(net.add("GatherElements", data, everywhere, axis=0), shape)


def _has_length(at: Attributes, length: str) -> bool:
    is_used = at.flag("use_sequence_length")
    if is_used and not length:
        raise RefusedError("use_sequence_length = True without a sequence length")
    return is_used


CONVERTERS: dict[str, Converter] = {"SequenceMask": _mask, "SequenceLast": _last, "SequenceReverse": _reversed}
