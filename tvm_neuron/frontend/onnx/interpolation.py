"""interpolation: where each element of a resized axis comes from, as the ONNX standard defines it for Resize."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tvm_neuron.errors import ModelError


@dataclass(frozen=True)
class Axis:
    """One axis to resize: `size` elements become `new_size`, `scale` times as many before rounding; `roi` is the
    part of the axis, in fractions of it, that is resized by tf_crop_and_resize."""

    size: int
    new_size: int
    scale: float
    roi: tuple[float, float] = (0.0, 1.0)


def positions(axis: Axis, mode: str) -> np.ndarray:
    """For every element of the new axis its place on the old one, as float32.

    onnxruntime, torch and the standard's own NumPy divide in float32: element 3 of a new axis 0.6 times as long comes
    from 5, though it is 4.9999998 by the next float64 of that 0.6, and the nearest below would be another.
    """
    y, scale = np.arange(axis.new_size, dtype=np.float32), np.float32(axis.scale)
    half, size, length = np.float32(0.5), np.float32(axis.size), scale * np.float32(axis.size)
    match mode:
        case "half_pixel":
            return (y + half) / scale - half
        case "half_pixel_symmetric":
            begin = size / 2 * (1 - np.float32(axis.new_size) / length)
            wide = np.arange(axis.new_size) + 0.5  # float64 up to the sum, which onnxruntime has here alone
            return (begin + wide / np.float64(scale) - 0.5).astype(np.float32)
        case "pytorch_half_pixel":
            return (y + half) / scale - half if axis.new_size > 1 else np.zeros_like(y)
        case "align_corners":
            return y * (size - 1) / (length - 1) if length != 1 else np.zeros_like(y)
        case "asymmetric":
            return y / scale
        case "tf_half_pixel_for_nn":
            return (y + half) / scale
        case "tf_crop_and_resize":
            begin, end = map(np.float32, axis.roi)
            last = size - 1
            if length == 1:
                return np.full_like(y, (begin + end) * last / 2)
            return begin * last + y * (end - begin) * last / (length - 1)
        case _:
            raise ModelError(f"its coordinate_transformation_mode '{mode}' is none of the standard's")


_HALF_WAY = 1e-6


def nearest(x: np.ndarray, size: int, mode: str) -> np.ndarray:
    """The index of the element that each position in `x` takes; as in onnxruntime, nearly half way is half way."""
    x = x.astype(np.float64)  # in which a half is added exactly
    rounded = {
        "round_prefer_floor": np.ceil(x - 0.5 - _HALF_WAY), "round_prefer_ceil": np.floor(x + 0.5 + _HALF_WAY),
        "floor": np.floor(x), "ceil": np.ceil(x),
    }.get(mode)  # fmt: skip
    if rounded is None:
        raise ModelError(f"its nearest_mode '{mode}' is none of the standard's")
    return np.clip(rounded, 0, size - 1).astype(np.int64)


def weights(
    x: np.ndarray, axis: Axis, kernel: Callable[[np.ndarray], np.ndarray], reach: int, antialias: bool, exclude: bool
) -> np.ndarray:
    """The matrix [new_size, size] that makes the new axis of the old one.

    `kernel` gives the weight at a distance of less than `reach` elements; `antialias` widens it where the axis
    shrinks; `exclude` leaves out what lies outside the axis, where otherwise the outermost element stands.
    """
    narrowing = min(axis.scale, 1.0) if antialias else 1.0
    width = int(np.ceil(reach / narrowing))
    taps = np.floor(x).astype(np.int64)[:, None] + np.arange(-width, width + 2)
    found = kernel(np.abs(narrowing * (taps - x[:, None])))
    if exclude:
        found = np.where((taps < 0) | (taps >= axis.size), 0.0, found)
    found = found / found.sum(axis=1, keepdims=True)
    matrix = np.zeros((axis.new_size, axis.size))
    rows = np.broadcast_to(np.arange(axis.new_size)[:, None], taps.shape)
    np.add.at(matrix, (rows, np.clip(taps, 0, axis.size - 1)), found)
    return matrix


def linear(distance: np.ndarray) -> np.ndarray:
    """1 - |d| within one element."""
    return np.maximum(1 - distance, 0)


def cubic(a: float) -> Callable[[np.ndarray], np.ndarray]:
    """Keys' cubic convolution kernel with the parameter `a`."""

    def kernel(d: np.ndarray) -> np.ndarray:
        near = (a + 2) * d**3 - (a + 3) * d**2 + 1
        far = a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a
        return np.where(d <= 1, near, np.where(d < 2, far, 0.0))

    return kernel
