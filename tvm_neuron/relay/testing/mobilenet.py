"""MobileNet (Howard et al.)."""

from typing import Any

from tvm_neuron.relay.ir.expr import Function, var
from tvm_neuron.relay.testing.init import create_workload
from tvm_neuron.relay.testing.layers import batch_norm_infer, conv2d, conv_kernel_layout, dense_add_bias, network, nn

_DEEP = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1)]
_SHALLOW = [*_DEEP[:6], (1024, 2), (1024, 2)]
"""Channels and stride of each block."""


def mobile_net(
    num_classes: int = 1000, data_shape: tuple[int, ...] = (1, 3, 224, 224), dtype: str = "float32", alpha: float = 1.0,
    is_shallow: bool = False, layout: str = "NCHW",
) -> Function:  # fmt: skip
    """The network as a function; `alpha` scales its channels."""
    kernel, depthwise, axis = conv_kernel_layout(layout), conv_kernel_layout(layout, True), layout.index("C")
    channels = int(32 * alpha)
    body = conv2d(
        var("data", shape=data_shape, dtype=dtype), "conv_block_1_conv", channels=channels, kernel_size=(3, 3),
        strides=(2, 2), padding=(1, 1), data_layout=layout, kernel_layout=kernel,
    )  # fmt: skip
    body = nn["relu"](batch_norm_infer(body, "conv_block_1_bn", axis=axis))
    for number, (count, stride) in enumerate(_SHALLOW if is_shallow else _DEEP, 1):
        name = f"separable_conv_block_{number}"
        shape = (channels, 1, 3, 3) if layout == "NCHW" else (3, 3, channels, 1)
        weight = var(f"{name}_weight", shape=shape, dtype=dtype)
        body = conv2d(
            body, name, weight, channels=channels, groups=channels, kernel_size=(3, 3), strides=(stride, stride),
            padding=(1, 1), data_layout=layout, kernel_layout=depthwise,
        )  # fmt: skip
        body = nn["relu"](batch_norm_infer(body, f"{name}_bn1", axis=axis))
        channels = int(count * alpha)
        body = conv2d(
            body, f"{name}_conv2", channels=channels, kernel_size=(1, 1), data_layout=layout, kernel_layout=kernel
        )
        body = nn["relu"](batch_norm_infer(body, f"{name}_bn2", axis=axis))
    flat = nn["batch_flatten"](nn["global_avg_pool2d"](body, layout=layout))
    return network(nn["softmax"](dense_add_bias(flat, "fc", units=num_classes)))


def get_workload(
    batch_size: int = 1, num_classes: int = 1000, image_shape: tuple[int, ...] = (3, 224, 224), dtype: str = "float32",
    layout: str = "NCHW",
) -> Any:  # fmt: skip
    """The module of the network, and its weights."""
    return create_workload(mobile_net(num_classes, (batch_size, *image_shape), dtype, layout=layout))
