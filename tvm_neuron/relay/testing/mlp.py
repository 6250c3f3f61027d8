"""A perceptron of three layers."""

from typing import Any

from tvm_neuron.relay.ir.expr import Function, var
from tvm_neuron.relay.testing.init import create_workload
from tvm_neuron.relay.testing.layers import dense_add_bias, network, nn


def get_net(
    batch_size: int, num_classes: int = 10, image_shape: tuple[int, ...] = (1, 28, 28), dtype: str = "float32"
) -> Function:
    """The network as a function."""
    body = nn["batch_flatten"](var("data", shape=(batch_size, *image_shape), dtype=dtype))
    for number, units in enumerate((128, 64), 1):
        body = nn["relu"](dense_add_bias(body, f"fc{number}", units=units))
    return network(nn["softmax"](dense_add_bias(body, "fc3", units=num_classes)))


def get_workload(
    batch_size: int, num_classes: int = 10, image_shape: tuple[int, ...] = (1, 28, 28), dtype: str = "float32"
) -> Any:
    """The module of the network, and its weights."""
    return create_workload(get_net(batch_size, num_classes, image_shape, dtype))
