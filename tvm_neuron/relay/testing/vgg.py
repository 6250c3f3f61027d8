"""VGG (Simonyan and Zisserman)."""

from typing import Any

from tvm_neuron.relay.ir.expr import Function, var
from tvm_neuron.relay.testing.init import create_workload
from tvm_neuron.relay.testing.layers import batch_norm_infer, conv2d, dense_add_bias, network, nn

_LAYERS = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}
_CHANNELS = (64, 128, 256, 512, 512)


def get_net(
    batch_size: int, image_shape: tuple[int, ...], num_classes: int, dtype: str, num_layers: int = 11,
    batch_norm: bool = False,
) -> Function:  # fmt: skip
    """The network as a function.

    Raises ValueError: there is no such network.
    """
    if num_layers not in _LAYERS:
        raise ValueError(f"num_layers is {num_layers}; there are {', '.join(map(str, _LAYERS))}")
    body: Any = var("data", shape=(batch_size, *image_shape), dtype=dtype)
    for stage, (count, channels) in enumerate(zip(_LAYERS[num_layers], _CHANNELS, strict=True), 1):
        for number in range(1, count + 1):
            name = f"{stage}_{number}"
            body = conv2d(body, f"conv{name}", channels=channels, kernel_size=(3, 3), padding=(1, 1))
            body = nn["bias_add"](body, var(f"conv{name}_bias"))
            body = batch_norm_infer(body, f"bn{name}") if batch_norm else body
            body = nn["relu"](body)
        body = nn["max_pool2d"](body, (2, 2), (2, 2))
    body = nn["batch_flatten"](body)
    for name in ("fc6", "fc7"):
        body = nn["dropout"](nn["relu"](dense_add_bias(body, name, units=4096)))
    return network(nn["softmax"](dense_add_bias(body, "fc8", units=num_classes)))


def get_workload(
    batch_size: int, num_classes: int = 1000, image_shape: tuple[int, ...] = (3, 224, 224), dtype: str = "float32",
    num_layers: int = 11, batch_norm: bool = False,
) -> Any:  # fmt: skip
    """The module of the network, and its weights."""
    return create_workload(get_net(batch_size, image_shape, num_classes, dtype, num_layers, batch_norm))
