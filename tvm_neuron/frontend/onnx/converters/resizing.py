"""Resize and Upsample: each resized axis is multiplied by a constant matrix, or a movement for the nearest element."""

import math

import numpy as np
from tvm import relax

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.interpolate import interpolated
from tvm_neuron.frontend.onnx.converters.converter import Converter, Node
from tvm_neuron.frontend.onnx.interpolation import Axis, cubic, linear, nearest, positions, weights


def _resize(node: Node) -> relax.Expr | None:
    """The operand resized along `axes` to `sizes`, or by `scales`."""
    if node.opset < 11:
        return _upsample(node)
    rank = len(node.shape())
    axes = [int(axis) % rank for axis in node.attrs.get("axes", range(rank))]
    roi = node.constant(1)
    scales, sizes = (_given(node, position) for position in (2, 3))
    if sizes is None and scales is None:
        return None
    coordinates = _text(node, "coordinate_transformation_mode")
    if sizes is None and scales is not None and coordinates == "align_corners" and node.producer == "pytorch":
        # torch aligns the corners of what comes out, as onnxruntime does; the standard those of sizes before rounding
        sizes = np.array([_scaled(node.shape()[axis], scale) for axis, scale in zip(axes, scales, strict=True)])
    fractions = [(0.0, 1.0)] * rank if roi is None or not roi.size else list(zip(*roi.reshape(2, -1), strict=True))
    return _resized(node, _axes(node, axes, scales, sizes, fractions), coordinates)


def _upsample(node: Node) -> relax.Expr | None:
    """Resize of opset 10 and Upsample: the position is y / scale, the nearest element the one before it."""
    scales = node.attrs["scales"] if "scales" in node.attrs else _given(node, 1)
    if scales is None:
        return None
    shape = node.shape()
    everywhere = [(0.0, 1.0)] * len(shape)
    return _resized(node, _axes(node, list(range(len(shape))), scales, None, everywhere), "asymmetric")


def _given(node: Node, position: int) -> np.ndarray | None:
    value = node.constant(position)
    if value is None and node.given(position) is not None:
        raise ModelError("its scales or sizes are known at run time only, so its result has no static shape")
    return None if value is None or not value.size else value


def _axes(
    node: Node,
    axes: list[int],
    scales: np.ndarray | None,
    sizes: np.ndarray | None,
    fractions: list[tuple[float, float]],
) -> dict[int, Axis]:
    shape = node.shape()
    if sizes is None:
        assert scales is not None
        factors = [float(scale) for scale in scales]
        new_sizes = [_scaled(shape[axis], factor) for axis, factor in zip(axes, factors, strict=True)]
    else:
        new_sizes = [int(size) for size in sizes]
        factors = [size / shape[axis] for axis, size in zip(axes, new_sizes, strict=True)]
        policy = node.attrs.get("keep_aspect_ratio_policy", b"stretch")
        if policy != b"stretch":
            factor = min(factors) if policy == b"not_larger" else max(factors)
            factors = [factor] * len(axes)
            new_sizes = [math.floor(factor * shape[axis] + 0.5) for axis in axes]
    return {
        axis: Axis(shape[axis], new_size, factor, (float(roi[0]), float(roi[1])))
        for axis, new_size, factor, roi in zip(axes, new_sizes, factors, fractions, strict=False)
    }


def _scaled(size: int, scale: float) -> int:
    """The size that comes out, computed in float32 as onnxruntime does: 21 of 30 and 0.7, which is 20.9999996."""
    return math.floor(np.float32(size) * np.float32(scale))


def _resized(node: Node, axes: dict[int, Axis], coordinates: str) -> relax.Expr:
    mode = node.attrs.get("mode", b"nearest").decode()
    dtype, result = node.dtype(), node.inputs[0]
    is_crop = coordinates == "tf_crop_and_resize"
    changed = {at: axis for at, axis in axes.items() if (axis.new_size, axis.scale) != (axis.size, 1.0) or is_crop}
    if mode != "nearest" and dtype not in ("float16", "float64"):
        result = node.emit(relax.op.astype(result, "float32"))
    for at, axis in changed.items():
        x = positions(axis, coordinates)
        if mode == "nearest":
            result = _moved(node, result, at, nearest(x, axis.size, _nearest_mode(node)))
        else:
            result = interpolated(result, at, _matrix(node, x, axis, mode), node.emit)
        outside = (x < 0) | (x > axis.size - 1)
        if is_crop and outside.any():
            mask = outside.reshape([-1 if each == at else 1 for each in range(len(result.ty.shape))])
            fill = relax.const(node.attrs.get("extrapolation_value", 0.0), result.ty.dtype)
            result = node.emit(relax.op.where(relax.const(mask), fill, result))
    return _back(node, result, dtype)


def _matrix(node: Node, x: np.ndarray, axis: Axis, mode: str) -> np.ndarray:
    antialias, exclude = bool(node.attrs.get("antialias", 0)), bool(node.attrs.get("exclude_outside", 0))
    if mode in ("linear", "bilinear"):
        return weights(x, axis, linear, 1, antialias, exclude)
    if mode == "cubic":
        return weights(x, axis, cubic(node.attrs.get("cubic_coeff_a", -0.75)), 2, antialias, exclude)
    raise ModelError(f"its mode '{mode}' is none of the standard's")


def _moved(node: Node, value: relax.Expr, axis: int, indices: np.ndarray) -> relax.Expr:
    """Elements of `value` along `axis`: repeated where the factor is whole, else taken one by one."""
    size = int(value.ty.shape[axis])
    factor = len(indices) // size
    if factor and np.array_equal(indices, np.arange(size * factor) // factor):
        return node.emit(relax.op.repeat(value, factor, axis))
    return node.emit(relax.op.take(value, relax.const(indices), axis, mode="clip"))


def _back(node: Node, value: relax.Expr, dtype: str) -> relax.Expr:
    """The result in the operand's dtype; of integers the nearest."""
    if str(value.ty.dtype) == dtype:
        return value
    if "int" in dtype:
        limits = np.iinfo(dtype)
        value = node.emit(relax.op.clip(node.emit(relax.op.round(value)), int(limits.min), int(limits.max)))
    return node.emit(relax.op.astype(value, dtype))


def _nearest_mode(node: Node) -> str:
    if node.opset < 11:
        return "floor"
    return node.attrs.get("nearest_mode", b"round_prefer_floor").decode()


def _text(node: Node, name: str) -> str:
    return node.attrs.get(name, b"half_pixel").decode()


CONVERTERS: dict[str, Converter] = {"Resize": _resize, "Upsample": _upsample}
