"""Tensors and references in NumPy that the families' cases are made of."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from tvm_neuron import relay

RNG = np.random.default_rng(18)
X = RNG.standard_normal((3, 4, 6)).astype("float32")
Y = RNG.standard_normal((3, 4, 6)).astype("float32")
POSITIVE = RNG.uniform(0.2, 0.9, (3, 4, 6)).astype("float32")
WHOLE, DIVISOR = (RNG.integers(-9, 9, (3, 4, 6)).astype("int32") for _ in range(2))
DIVISOR[DIVISOR == 0] = 5
IMAGE = RNG.standard_normal((2, 4, 7, 9)).astype("float32")
WEIGHT = RNG.standard_normal((6, 4, 3, 3)).astype("float32")
VECTOR = RNG.standard_normal(4).astype("float32")

Case = tuple[str, Callable[..., object], Callable[..., object], Sequence[NDArray]]


def conv2d(data: NDArray, weight: NDArray, stride: int = 1, pad: int = 0, groups: int = 1) -> NDArray:
    data = np.pad(data.astype("float64"), [(0, 0), (0, 0), (pad, pad), (pad, pad)])
    size, count = weight.shape[1], len(weight) // groups
    windows = sliding_window_view(data, weight.shape[2:], (2, 3))[:, :, ::stride, ::stride]
    parts = [
        np.einsum("ncyxij,ocij->noyx", windows[:, g * size : (g + 1) * size], weight[g * count : (g + 1) * count])
        for g in range(groups)
    ]
    return np.concatenate(parts, 1)


def in_blocks(data: NDArray) -> NDArray:
    """NCHW as NCHW2c."""
    batch, channels, height, width = data.shape
    return data.reshape(batch, channels // 2, 2, height, width).transpose(0, 1, 3, 4, 2).copy()


def pool(data: NDArray, size: int, reduce: Callable[..., NDArray]) -> NDArray:
    return reduce(sliding_window_view(data, (size, size), (2, 3)), axis=(-2, -1))


def softmax(x: NDArray, axis: int) -> NDArray:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def normalised(x: NDArray, axes: tuple[int, ...]) -> NDArray:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)


def along(vector: NDArray, rank: int, axis: int) -> NDArray:
    return vector.reshape([-1 if each == axis else 1 for each in range(rank)])


def unary(names: str, reference: object, data: NDArray) -> list[Case]:
    return [(n, lambda x, n=n: getattr(relay, n)(x), getattr(reference, n), [data]) for n in names.split()]


def binary(names: str, reference: object, *data: NDArray) -> list[Case]:
    return [(n, lambda x, y, n=n: getattr(relay, n)(x, y), getattr(reference, n), data) for n in names.split()]
