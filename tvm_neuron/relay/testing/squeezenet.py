"""SqueezeNet (Iandola et al.), versions 1.0 and 1.1."""

from typing import Any

from tvm_neuron.relay.ir.expr import Function, var
from tvm_neuron.relay.op import namespace
from tvm_neuron.relay.testing.init import create_workload
from tvm_neuron.relay.testing.layers import conv_bias_relu, network, nn

_POOL = 0
_NETS = {
    "1.0": ((96, 7, 3), [_POOL, 16, 16, 32, _POOL, 32, 48, 48, 64, _POOL, 64]),
    "1.1": ((64, 3, 1), [_POOL, 16, 16, _POOL, 32, 32, _POOL, 48, 48, 64, 64]),
}
"""Channels, size and padding of the first convolution; then what each fire module squeezes to, or a pool."""


def get_net(batch_size: int, image_shape: tuple[int, ...], num_classes: int, version: str, dtype: str) -> Function:
    """The network as a function.

    Raises ValueError: there is no such version.
    """
    if version not in _NETS:
        raise ValueError(f"version is '{version}'; there are {', '.join(_NETS)}")
    (channels, size, padding), steps = _NETS[version]
    data = var("data", shape=(batch_size, *image_shape), dtype=dtype)
    body = conv_bias_relu(
        data, "conv1", channels=channels, kernel_size=(size, size), strides=(2, 2), padding=(padding, padding)
    )
    number = 0
    for squeezed in steps:
        if squeezed == _POOL:
            body = nn["max_pool2d"](body, (3, 3), (2, 2))
        else:
            number += 1
            body = _fire(body, squeezed, f"fire{number}")
    body = conv_bias_relu(nn["dropout"](body), "conv_final", channels=num_classes, kernel_size=(1, 1))
    return network(nn["softmax"](nn["batch_flatten"](nn["global_avg_pool2d"](body))))


def _fire(data: Any, squeezed: int, name: str) -> Any:
    body = conv_bias_relu(data, f"{name}_input_conv", channels=squeezed, kernel_size=(1, 1))
    parts = [
        conv_bias_relu(
            body, f"{name}_{side}_conv", channels=4 * squeezed, kernel_size=(size, size), padding=(size // 2, size // 2)
        )
        for side, size in (("left", 1), ("right", 3))
    ]
    return namespace()["concatenate"](parts, axis=1)


def get_workload(
    batch_size: int = 1, num_classes: int = 1000, version: str = "1.0", image_shape: tuple[int, ...] = (3, 224, 224),
    dtype: str = "float32",
) -> Any:  # fmt: skip
    """The module of the network, and its weights."""
    return create_workload(get_net(batch_size, image_shape, num_classes, version, dtype))
