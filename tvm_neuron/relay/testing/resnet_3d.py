"""ResNet over volumes or videos."""

from typing import Any

from tvm_neuron.relay.ir.expr import Function
from tvm_neuron.relay.testing.init import create_workload
from tvm_neuron.relay.testing.layers import conv3d
from tvm_neuron.relay.testing.residual import Residual, sizes


def get_net(
    batch_size: int, num_classes: int, num_layers: int = 50, image_shape: tuple[int, ...] = (3, 16, 112, 112),
    layout: str = "NCDHW", dtype: str = "float32",
) -> Function:  # fmt: skip
    """The network as a function.

    Raises ValueError: there is no such network.
    """
    height = image_shape[layout.index("H") - 1]
    units, filters, is_bottleneck = sizes(num_layers, height <= 28)
    shape = (batch_size, *image_shape)
    return Residual(conv3d, 3, layout).network(
        units, filters, num_classes, shape, is_bottleneck, dtype, is_small=height <= 32
    )


def get_workload(
    batch_size: int = 1, num_classes: int = 1000, num_layers: int = 18,
    image_shape: tuple[int, ...] = (3, 16, 112, 112), layout: str = "NCDHW", dtype: str = "float32",
) -> Any:  # fmt: skip
    """The module of the network, and its weights."""
    return create_workload(get_net(batch_size, num_classes, num_layers, image_shape, layout, dtype))
