"""Activations with a choice of function, and softmax in its forms, the heads of training among them."""

from math import prod

import numpy as np

from tvm_neuron.frontend.mxnet.attributes import Attributes
from tvm_neuron.frontend.mxnet.network import Network
from tvm_neuron.frontend.mxnet.operators.converter import Converter
from tvm_neuron.frontend.mxnet.operators.sequences import positions_before
from tvm_neuron.frontend.refused import RefusedError

_FUNCTIONS = {"relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh", "softrelu": "Softplus", "softsign": "Softsign"}
_LEAKY = ("leaky", "elu", "prelu", "selu", "gelu", "rrelu")


def _activation(net: Network, at: Attributes, data: str) -> str:
    return str(net.add(_FUNCTIONS[at.text("act_type", "", tuple(_FUNCTIONS))], data))


def _leaky(net: Network, at: Attributes, data: str, gamma: str = "") -> str:
    kind = at.text("act_type", "leaky", _LEAKY)
    slope, lower, upper = at.number("slope", 0.25), at.number("lower_bound", 0.125), at.number("upper_bound", 0.334)
    if kind == "prelu":
        if not gamma:
            raise RefusedError("act_type = prelu without gamma")
        if net.rank(gamma) == 1 < net.rank(data):
            gamma = net.reshaped(gamma, [*net.shape(gamma), *[1] * (net.rank(data) - 2)])
        return str(net.add("PRelu", data, gamma))
    if kind in ("selu", "gelu"):
        return str(net.add(kind.capitalize(), data))
    if kind == "elu":
        return str(net.add("Elu", data, alpha=slope))
    return str(net.add("LeakyRelu", data, alpha=slope if kind == "leaky" else (lower + upper) / 2))


def _softmax(op: str) -> Converter:
    def convert(net: Network, at: Attributes, data: str, length: str = "") -> str:
        axis, temperature = net.axis(at.whole("axis", -1), data), at.number("temperature", 1)
        kind = at.dtype("dtype", net.dtype(data))
        if temperature != 1:
            data = net.add("Div", data, net.number(temperature, data))
        if not at.flag("use_length"):
            return net.cast(net.add(op, data, axis=axis), kind)
        if op != "Softmax":
            raise RefusedError("use_length = True, which softmax alone has")
        is_within = positions_before(net, data, axis, length, [each for each in range(net.rank(data)) if each != axis])
        lowest = net.number(float(np.finfo(net.dtype(data)).min), data)
        shares = net.add(op, net.add("Where", is_within, data, lowest), axis=axis)
        return net.cast(net.add("Where", is_within, shares, net.number(0, data)), kind)

    return convert


def _softmax_output(net: Network, at: Attributes, data: str) -> str:
    at.skip("grad_scale", "ignore_label", "use_ignore", "normalization", "out_grad", "smooth_alpha")
    has_channels, has_rows = at.flag("multi_output"), at.flag("preserve_shape")
    if has_channels or has_rows:
        return str(net.add("Softmax", data, axis=1 if has_channels else -1))
    rows = net.reshaped(data, [net.shape(data)[0], prod(net.shape(data)[1:])])
    return net.reshaped(net.add("Softmax", rows, axis=-1), net.shape(data))


def _softmax_activation(net: Network, at: Attributes, data: str) -> str:
    mode = at.text("mode", "instance", ("instance", "channel"))
    return str(net.add("Softmax", data, axis=1 if mode == "channel" else -1))


def _regression(op: str) -> Converter:
    def convert(net: Network, at: Attributes, data: str) -> str:
        at.skip("grad_scale")
        return str(net.add(op, data))

    return convert


LOSSES: dict[str, Converter] = {
    "SoftmaxOutput": _softmax_output,
    "Softmax": _softmax_output,  # its name in MXNet 0.5
    "LinearRegressionOutput": _regression("Identity"),
    "MAERegressionOutput": _regression("Identity"),
    "LogisticRegressionOutput": _regression("Sigmoid"),
}
"""Those whose further inputs are labels, which results do not follow from."""

CONVERTERS: dict[str, Converter] = {
    "Activation": _activation,
    "LeakyReLU": _leaky,
    "softmax": _softmax("Softmax"),
    "log_softmax": _softmax("LogSoftmax"),
    "SoftmaxActivation": _softmax_activation,
    **LOSSES,
}
