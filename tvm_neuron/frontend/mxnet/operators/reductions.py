"""Sums, means, extremes and their like over some dimensions."""

import numpy as np

from tvm_neuron.frontend.mxnet.attributes import Attributes
from tvm_neuron.frontend.mxnet.network import Network
from tvm_neuron.frontend.mxnet.operators.converter import Converter
from tvm_neuron.frontend.refused import RefusedError


def _reduce(op: str) -> Converter:
    def convert(net: Network, at: Attributes, data: str) -> str:
        found = net.add(op, data, net.ints(_axes(net, at, data)), keepdims=int(at.flag("keepdims")))
        return found if net.rank(found) else net.reshaped(found, [1])  # MXNet has no tensors without dimensions

    return convert


def _axes(net: Network, at: Attributes, data: str) -> list[int]:
    """Those that are named, all if none are; or all but those (`exclude`)."""
    named, every = [net.axis(axis, data) for axis in at.sizes("axis", ())], [*range(net.rank(data))]
    if at.flag("exclude"):
        return [axis for axis in every if axis not in named]
    return named or every


def _norm(net: Network, at: Attributes, data: str) -> str:
    order = at.whole("ord", 2)
    if order not in (1, 2):
        raise RefusedError(f"ord = {order}; 1 and 2 are known")
    kind = at.dtype("out_dtype", net.dtype(data))
    return net.cast(_reduce(f"ReduceL{order}")(net, at, data), kind)


def _position(op: str) -> Converter:
    def convert(net: Network, at: Attributes, data: str) -> str:
        axis, keeps = at.maybe("axis"), at.flag("keepdims")
        if axis is None:
            shape = [1] * net.rank(data) if keeps else [1]
            found = net.add(op, net.reshaped(data, [-1]), axis=0, keepdims=1)
            return net.cast(net.reshaped(found, shape), np.float32)
        return net.cast(net.add(op, data, axis=axis, keepdims=int(keeps)), np.float32)

    return convert


_REDUCTIONS = {"sum": "ReduceSum", "mean": "ReduceMean", "max": "ReduceMax", "min": "ReduceMin", "prod": "ReduceProd"}
_PLAIN = {name: _reduce(op) for name, op in _REDUCTIONS.items()}

CONVERTERS: dict[str, Converter] = {
    **_PLAIN, **{f"{name}_axis": _PLAIN[name] for name in ("sum", "max", "min")}, "norm": _norm,
    "argmax": _position("ArgMax"), "argmin": _position("ArgMin"),
}  # fmt: skip
