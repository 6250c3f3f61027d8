"""Normalisations and the softmaxes."""

from collections.abc import Mapping, Sequence
from typing import Any

from tvm_neuron.relay.ir.ty import TensorType
from tvm_neuron.relay.op.declare import R, Tensor, Types, axis_of, operator
from tvm_neuron.relay.op.elementwise import number
from tvm_neuron.relay.op.reduce import axes_of


def _vectors(types: Types, attrs: Mapping[str, Any]) -> Mapping[int, TensorType]:
    """Scales and the like have one element for each along `axis`."""
    data = types[0]
    if data is None:
        raise ValueError("its data has no type")
    vector = TensorType([data.shape[attrs["axis"]]], data.dtype)
    return dict.fromkeys(range(1, len(types)), vector)


def along(vector: Any, data: Any, axis: int) -> Any:
    """A vector as a tensor that is broadcast along `axis` of `data`."""
    rank = int(data.ty.ndim)
    at = axis_of(axis, rank)
    return R.reshape(vector, [-1 if each == at else 1 for each in range(rank)])


def _scaled(data: Any, gamma: Any, beta: Any, axis: int, center: bool, scale: bool) -> Any:
    if scale:
        data = R.multiply(data, gamma)
    return R.add(data, beta) if center else data


def _normalised(data: Any, axes: list[int], epsilon: float) -> Any:
    off = R.subtract(data, R.mean(data, axes, True))
    spread = R.mean(R.multiply(off, off), axes, True)
    return R.multiply(off, R.rsqrt(R.add(spread, number(epsilon, data))))


@operator("nn.softmax")
def softmax(data: Tensor, axis: int = -1) -> Tensor:
    """Exponentials over their sum along `axis`."""
    return R.nn.softmax(data, axes_of(data, axis)[0])


@operator("nn.fast_softmax")
def fast_softmax(data: Tensor, axis: int = -1) -> Tensor:
    """The same as `softmax`: there is no quicker, less exact one here."""
    return R.nn.softmax(data, axes_of(data, axis)[0])


@operator("nn.log_softmax")
def log_softmax(data: Tensor, axis: int = -1) -> Tensor:
    """The logarithm of `softmax`."""
    return R.nn.log_softmax(data, axes_of(data, axis)[0])


@operator("nn.batch_norm", outputs=3, fill=_vectors)
def batch_norm(
    data: Tensor, gamma: Tensor, beta: Tensor, moving_mean: Tensor, moving_var: Tensor, axis: int = 1,
    epsilon: float = 1e-5, center: bool = True, scale: bool = True,
) -> Any:  # fmt: skip
    """Normalised by the moving mean and variance, as in inference; and these two, unchanged."""
    at = axes_of(data, axis)[0]
    factor = R.rsqrt(R.add(moving_var, number(epsilon, moving_var)))
    factor = R.multiply(factor, gamma) if scale else factor
    shift = R.negative(R.multiply(moving_mean, factor))
    shift = R.add(shift, beta) if center else shift
    result = R.add(R.multiply(data, along(factor, data, at)), along(shift, data, at))
    return [result, moving_mean, moving_var]


@operator("nn.layer_norm", fill=_vectors)
def layer_norm(
    data: Tensor, gamma: Tensor, beta: Tensor, axis: int = -1, epsilon: float = 1e-5, center: bool = True,
    scale: bool = True,
) -> Tensor:  # fmt: skip
    """Normalised by the mean and variance along `axis`."""
    (at,) = axes_of(data, axis)
    return R.nn.layer_norm(data, *_affine(data, gamma, beta, center, scale), at, epsilon)


def _affine(data: Any, gamma: Any, beta: Any, center: bool, scale: bool) -> tuple[Any, Any]:
    """Scales of one and shifts of zero where they are switched off."""
    return gamma if scale else R.ones_like(gamma), beta if center else R.zeros_like(beta)


@operator("nn.instance_norm", fill=_vectors)
def instance_norm(
    data: Tensor, gamma: Tensor, beta: Tensor, axis: int = 1, epsilon: float = 1e-5, center: bool = True,
    scale: bool = True,
) -> Tensor:  # fmt: skip
    """Normalised by the mean and variance over all dimensions but the first and `axis`."""
    at = axes_of(data, axis)[0]
    axes = [each for each in range(1, int(data.ty.ndim)) if each != at]
    result = _normalised(data, axes, epsilon)
    return _scaled(result, along(gamma, data, at), along(beta, data, at), at, center, scale)


@operator("nn.group_norm", fill=_vectors)
def group_norm(
    data: Tensor, gamma: Tensor, beta: Tensor, num_groups: int, axis: int = 1, epsilon: float = 1e-5,
    center: bool = True, scale: bool = True,
) -> Tensor:  # fmt: skip
    """Normalised by the mean and variance of each group of elements along `axis`."""
    at = axes_of(data, axis)[0]
    rest = [each for each in range(1, int(data.ty.ndim)) if each != at]
    return R.nn.group_norm(data, *_affine(data, gamma, beta, center, scale), num_groups, at, rest, epsilon)


@operator("nn.l2_normalize")
def l2_normalize(data: Tensor, eps: float, axis: Sequence[int] | None = None) -> Tensor:
    """Divided by the root of the sum of squares over `axis`, which is at least `eps`."""
    total = R.sum(R.multiply(data, data), axes_of(data, axis), True)
    return R.multiply(data, R.rsqrt(R.maximum(total, number(eps, data))))


@operator("nn.lrn")
def lrn(
    data: Tensor, size: int = 5, axis: int = 1, bias: float = 2, alpha: float = 1e-5, beta: float = 0.75
) -> Tensor:
    """Divided by a power of the sum of squares of `size` neighbours along `axis`."""
    rank, at = int(data.ty.ndim), axes_of(data, axis)[0]
    length, reach = data.ty.shape[at], size // 2
    widths = [number for each in range(rank) for number in ((reach, reach) if each == at else (0, 0))]
    squares = R.nn.pad(R.multiply(data, data), widths)
    total = None
    for offset in range(size):
        part = R.strided_slice(squares, [at], [offset], [offset + length], assume_inbound=True)
        total = part if total is None else R.add(total, part)
    base = R.add(R.multiply(total, number(alpha / size, data)), number(bias, data))
    return R.divide(data, R.power(base, number(beta, data)))
