"""DenseNet, as TVM 0.18 had it: the blocks read the layer before, and give all layers of theirs."""

from typing import Any

from tvm_neuron.relay.ir.expr import Function, var
from tvm_neuron.relay.op import namespace
from tvm_neuron.relay.testing.init import create_workload
from tvm_neuron.relay.testing.layers import batch_norm_infer, conv2d, dense_add_bias, network, nn

_NETS = {
    121: (64, 32, (6, 12, 24, 16)), 161: (96, 48, (6, 12, 36, 24)), 169: (64, 32, (6, 12, 32, 32)),
    201: (64, 32, (6, 12, 48, 32)),
}  # fmt: skip
"""Channels of the first convolution, those that each layer adds, and the layers of each block."""
_BOTTLENECK = 4


def get_net(densenet_size: int, classes: int, batch_size: int, image_shape: tuple[int, ...], dtype: str) -> Function:
    """The network as a function.

    Raises ValueError: there is no such network.
    """
    if densenet_size not in _NETS:
        raise ValueError(f"densenet_size is {densenet_size}; there are {', '.join(map(str, _NETS))}")
    features, growth, blocks = _NETS[densenet_size]
    data = var("data", shape=(batch_size, *image_shape), dtype=dtype)
    body = conv2d(data, "conv1", channels=features, kernel_size=(7, 7), strides=(2, 2), padding=(3, 3))
    body = nn["max_pool2d"](nn["relu"](batch_norm_infer(body, "batch1")), (3, 3), (2, 2), padding=(1, 1))
    for block, count in enumerate(blocks):
        layers = []
        for layer in range(count):
            name = f"{block}_{layer}"
            body = nn["relu"](batch_norm_infer(body, f"batch_1_{name}"))
            body = conv2d(body, f"conv2d_1_{name}", channels=_BOTTLENECK * growth, kernel_size=(1, 1))
            body = nn["relu"](batch_norm_infer(body, f"batch_2_{name}"))
            body = conv2d(body, f"conv2d_2_{name}", channels=growth, kernel_size=(3, 3), padding=(1, 1))
            layers.append(body)
        body = namespace()["concatenate"](layers, 1)
        features += count * growth
        if block < len(blocks) - 1:
            features //= 2
            body = nn["relu"](batch_norm_infer(body, f"batch_t_{block}"))
            body = nn["avg_pool2d"](
                conv2d(body, f"conv_t_{block}", channels=features, kernel_size=(1, 1)), (2, 2), (2, 2)
            )
    body = nn["avg_pool2d"](nn["relu"](batch_norm_infer(body, "batch2")), (7, 7))
    return network(dense_add_bias(nn["batch_flatten"](body), "dense", units=classes))


def get_workload(
    densenet_size: int = 121, classes: int = 1000, batch_size: int = 4, image_shape: tuple[int, ...] = (3, 224, 224),
    dtype: str = "float32",
) -> Any:  # fmt: skip
    """The module of the network, and its weights."""
    return create_workload(get_net(densenet_size, classes, batch_size, image_shape, dtype))
