"""Layers with weights of their own, named after the layer, as Relay's networks name them."""

from typing import Any

from tvm_neuron.relay import op
from tvm_neuron.relay.analysis import free_vars
from tvm_neuron.relay.ir.expr import Function, var

nn = op.namespace("nn")
_KERNELS = {
    "NCHW": ("OIHW", "OIHW"),
    "NHWC": ("HWIO", "HWOI"),
    "NCDHW": ("OIDHW", "OIDHW"),
    "NDHWC": ("DHWIO", "DHWOI"),
}


def conv_kernel_layout(data_layout: str, is_depthwise: bool = False) -> str:
    """The layout of weights that goes with one of data.

    Raises ValueError: there is none.
    """
    if data_layout not in _KERNELS:
        raise ValueError(f"data_layout is '{data_layout}'; there are {', '.join(_KERNELS)}")
    return _KERNELS[data_layout][is_depthwise]


def batch_norm_infer(data: Any, name: str, gamma: Any = None, beta: Any = None, moving_mean: Any = None,
                     moving_var: Any = None, **kwargs: Any) -> Any:  # fmt: skip
    """A batch norm whose statistics are weights."""
    given = {"gamma": gamma, "beta": beta, "moving_mean": moving_mean, "moving_var": moving_var}
    weights = {key: var(f"{name}_{key}") if value is None else value for key, value in given.items()}
    return nn["batch_norm"](data, **weights, **kwargs)[0]


def conv2d(data: Any, name: str, weight: Any = None, **kwargs: Any) -> Any:
    """A convolution over two dimensions."""
    return nn["conv2d"](data, var(f"{name}_weight") if weight is None else weight, **kwargs)


def conv3d(data: Any, name: str, weight: Any = None, **kwargs: Any) -> Any:
    """A convolution over three dimensions."""
    return nn["conv3d"](data, var(f"{name}_weight") if weight is None else weight, **kwargs)


def conv2d_transpose(data: Any, name: str, weight: Any = None, **kwargs: Any) -> Any:
    """The transpose of a convolution over two dimensions."""
    return nn["conv2d_transpose"](data, var(f"{name}_weight") if weight is None else weight, **kwargs)


def dense_add_bias(
    data: Any, name: str, weight: Any = None, bias: Any = None, units: int | None = None, **kwargs: Any
) -> Any:
    """A product with a matrix, and a bias."""
    product = nn["dense"](data, var(f"{name}_weight") if weight is None else weight, units, **kwargs)
    return nn["bias_add"](product, var(f"{name}_bias") if bias is None else bias, axis=-1)


def conv_bias_relu(data: Any, name: str, axis: int = 1, **kwargs: Any) -> Any:
    """A convolution, a bias and a ReLU."""
    return nn["relu"](nn["bias_add"](conv2d(data, name, **kwargs), var(f"{name}_bias"), axis=axis))


def network(result: Any) -> Function:
    """The function of all that `result` takes from outside."""
    return Function(free_vars(result), result)
