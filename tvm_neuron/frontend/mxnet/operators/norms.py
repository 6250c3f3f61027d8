"""Normalisations."""

import numpy as np

from tvm_neuron.frontend.mxnet.attributes import Attributes
from tvm_neuron.frontend.mxnet.network import Network
from tvm_neuron.frontend.mxnet.operators.converter import Converter


def _batch_norm(net: Network, at: Attributes, data: str, gamma: str, beta: str, mean: str, variance: str) -> str:
    at.only("output_mean_var", "False")
    at.skip("momentum", "use_global_stats", "min_calib_range", "max_calib_range")
    axis = net.axis(at.whole("axis", 1), data)
    if at.flag("fix_gamma", True):
        gamma = net.constant(np.ones(net.shape(gamma), net.dtype(gamma)))
    found = net.add(
        "BatchNormalization", net.moved(data, axis, 1), gamma, beta, mean, variance, epsilon=at.number("eps", 1e-3)
    )
    return net.moved(found, 1, axis)


def _layer_norm(net: Network, at: Attributes, data: str, gamma: str, beta: str) -> str:
    at.only("output_mean_var", "False")
    axis = net.axis(at.whole("axis", -1), data)
    found = net.add("LayerNormalization", net.moved(data, axis, -1), gamma, beta, epsilon=at.number("eps", 1e-5))
    return net.moved(found, -1, axis)


def _instance_norm(net: Network, at: Attributes, data: str, gamma: str, beta: str) -> str:
    return str(net.add("InstanceNormalization", data, gamma, beta, epsilon=at.number("eps", 1e-3)))


def _unit_length(net: Network, at: Attributes, data: str) -> str:
    mode = at.text("mode", "instance", ("instance", "channel", "spatial"))
    axes = {"instance": [*range(1, net.rank(data))], "channel": [1], "spatial": [*range(2, net.rank(data))]}[mode]
    squares = net.add("ReduceSumSquare", data, net.ints(axes), keepdims=1)
    length = net.add("Sqrt", net.add("Add", squares, net.number(at.number("eps", 1e-10), data)))
    return str(net.add("Div", data, length))


def _local_response(net: Network, at: Attributes, data: str) -> str:
    return str(
        net.add("LRN", data, alpha=at.number("alpha", 1e-4), beta=at.number("beta", 0.75), bias=at.number("knorm", 2),
                size=at.whole("nsize"))
    )  # fmt: skip


CONVERTERS: dict[str, Converter] = {
    "BatchNorm": _batch_norm, "BatchNorm_v1": _batch_norm, "LayerNorm": _layer_norm, "InstanceNorm": _instance_norm,
    "L2Normalization": _unit_length, "LRN": _local_response,
}  # fmt: skip
