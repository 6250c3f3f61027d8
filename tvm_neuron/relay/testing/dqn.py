"""The network of deep Q-learning (Mnih et al.)."""

from typing import Any

from tvm_neuron.relay.ir.expr import Function, var
from tvm_neuron.relay.testing.init import create_workload
from tvm_neuron.relay.testing.layers import conv_bias_relu, conv_kernel_layout, dense_add_bias, network, nn


def get_net(
    batch_size: int, num_actions: int = 18, image_shape: tuple[int, ...] = (4, 84, 84), dtype: str = "float32",
    layout: str = "NCHW",
) -> Function:  # fmt: skip
    """The network as a function."""
    body: Any = var("data", shape=(batch_size, *image_shape), dtype=dtype)
    for number, (channels, size, stride) in enumerate(((32, 8, 4), (64, 4, 2), (64, 3, 1)), 1):
        body = conv_bias_relu(
            body, f"conv{number}", layout.index("C"), channels=channels, kernel_size=(size, size),
            strides=(stride, stride), data_layout=layout, kernel_layout=conv_kernel_layout(layout),
        )  # fmt: skip
    body = nn["relu"](dense_add_bias(nn["batch_flatten"](body), "dense1", units=512))
    return network(dense_add_bias(body, "dense2", units=num_actions))


def get_workload(
    batch_size: int, num_actions: int = 18, image_shape: tuple[int, ...] = (4, 84, 84), dtype: str = "float32",
    layout: str = "NCHW",
) -> Any:  # fmt: skip
    """The module of the network, and its weights."""
    return create_workload(get_net(batch_size, num_actions, image_shape, dtype, layout))
