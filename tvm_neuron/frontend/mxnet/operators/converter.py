"""Converter: the form of all converters, and those of operators that one of ONNX's is."""

from collections.abc import Callable
from typing import Any

from tvm_neuron.frontend.mxnet.attributes import Attributes
from tvm_neuron.frontend.mxnet.network import Network

Converter = Callable[..., Any]
"""Of (network, attributes, *inputs): the name of the result, or a list of several."""


def plain(op: str) -> Converter:
    """The operator of ONNX of the same inputs."""

    def convert(net: Network, at: Attributes, *inputs: str) -> Any:
        return net.add(op, *inputs)

    return convert


def same(net: Network, at: Attributes, data: str) -> str:
    """What it reads."""
    return data
