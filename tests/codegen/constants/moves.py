"""Nodes that move elements, or make tensors of sizes."""

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tests.codegen.constants.drawing import Array, Drawing


def concat(r: Drawing) -> onnx.NodeProto | None:
    name = r.pick(rank=1)
    if name is None:
        return None
    value, axis = r.value(name), r.axis(name)
    parts = [name]
    for _ in range(r.rng.integers(1, 4)):
        extent = int(r.choice([0, 1, 5, 7, 40]))
        shape = [extent if d == axis % value.ndim else n for d, n in enumerate(value.shape)]
        parts.append(r.new(r.filled(shape, value.dtype.name)))
    r.rng.shuffle(parts)
    return helper.make_node("Concat", parts, [""], axis=axis)


def split(r: Drawing) -> onnx.NodeProto | None:
    name = r.pick(rank=1)
    if name is None:
        return None
    axis = r.axis(name)
    extent = r.value(name).shape[axis]
    sizes = (extent // 3, extent - extent // 3)
    if r.opset < 13:
        return helper.make_node("Split", [name], ["", ""], axis=axis, split=sizes)
    return helper.make_node("Split", [name, r.ints(*sizes)], ["", ""], axis=axis)


def slice_(r: Drawing) -> onnx.NodeProto | None:
    name = r.pick(rank=1)
    if name is None:
        return None
    rank = r.value(name).ndim
    axes = sorted(r.rng.choice(rank, r.rng.integers(1, rank + 1), replace=False).tolist())
    steps = [int(r.rng.choice([1, 1, 2, 3, -1, -2])) for _ in axes]
    starts = [int(r.rng.integers(-4, 5)) if step > 0 else r.choice([-1, 9999]) for step in steps]
    ends = [int(r.rng.choice([9999, -1, 3])) if step > 0 else r.choice([-9999, 0]) for step in steps]
    return helper.make_node("Slice", [name, *(r.ints(*part) for part in (starts, ends, axes, steps))], [""])


def _indices(r: Drawing, shape: Sequence[int], extent: int) -> str:
    dtype = np.int64 if r.chance(0.6) else np.int32
    return r.new(r.rng.integers(-extent, extent, tuple(shape)).astype(dtype))


def gather(r: Drawing) -> onnx.NodeProto | None:
    name = r.pick(rank=1)
    if name is None or 0 in r.value(name).shape:
        return None
    value, axis = r.value(name), r.axis(name)
    extent = value.shape[axis]
    if r.chance(0.5):
        return helper.make_node("Gather", [name, _indices(r, r.shape(2), extent)], [""], axis=axis)
    shape = [int(r.rng.integers(1, 6)) if d == axis % value.ndim else n for d, n in enumerate(value.shape)]
    return helper.make_node("GatherElements", [name, _indices(r, shape, extent)], [""], axis=axis)


def _places(r: Drawing, shape: Sequence[int]) -> Array:
    """Different indices of the leading dimensions of a shape: [count, dimensions]."""
    depth = int(r.rng.integers(1, len(shape) + 1))
    all_places = np.stack(np.unravel_index(np.arange(np.prod(shape[:depth])), shape[:depth]), -1)
    count = int(r.rng.integers(1, min(len(all_places), 9) + 1))
    chosen = all_places[r.rng.permutation(len(all_places))[:count]].astype(np.int64)
    return np.where(r.rng.random(chosen.shape) < 0.3, chosen - np.array(shape[:depth]), chosen)


def nd(r: Drawing) -> onnx.NodeProto | None:
    name = r.pick(rank=1)
    if name is None or 0 in r.value(name).shape:
        return None
    value = r.value(name)
    places = _places(r, value.shape)
    if r.chance(0.4):
        return helper.make_node("GatherND", [name, r.new(places)], [""])
    updates = r.new(r.filled((len(places), *value.shape[places.shape[1] :]), value.dtype.name))
    return helper.make_node("ScatterND", [name, r.new(places), updates], [""], **_reduction(r, 16, name, updates))


def _reduction(r: Drawing, since: int, *operands: str) -> dict[str, str]:
    kinds = ["add", "mul", "max", "min"] if r.opset >= 18 else ["add", "mul"]
    is_usual = r.opset >= since and not any(map(r.has_nan, operands))
    return {"reduction": r.choice(kinds)} if is_usual and r.chance(0.5) else {}


def scatter(r: Drawing) -> onnx.NodeProto | None:
    name = r.pick(rank=1)
    if name is None or 0 in r.value(name).shape:
        return None
    value, axis = r.value(name), r.axis(name)
    count = int(r.rng.integers(1, value.shape[axis] + 1))
    shape = [count if d == axis % value.ndim else n for d, n in enumerate(value.shape)]
    order = np.argsort(r.rng.random(value.shape), axis)  # each position once
    places = np.take(order, np.arange(count), axis)
    places = np.where(r.rng.random(places.shape) < 0.3, places - value.shape[axis], places)
    updates = r.new(r.filled(shape, value.dtype.name))
    operands = [name, r.new(places.astype(np.int64)), updates]
    return helper.make_node("ScatterElements", operands, [""], axis=axis, **_reduction(r, 16, name, updates))


def pad(r: Drawing) -> onnx.NodeProto | None:
    name = r.pick(rank=1)
    if name is None:
        return None
    value = r.value(name)
    mode = r.choice(["constant", "constant", "reflect", "edge", "wrap"])
    low = -1 if mode == "constant" else 0
    pads = r.rng.integers(low, 4, 2 * value.ndim)
    if mode != "constant":
        pads = np.minimum(pads, np.array([n - 1 for n in value.shape] * 2))
        if 0 in value.shape or np.any(pads < 0):
            return None
    operands = [name, r.ints(*pads.tolist())]
    if mode == "constant" and r.chance(0.6):
        operands.append(r.new(r.filled((), value.dtype.name)))
    return helper.make_node("Pad", operands, [""], mode=mode)


def shapes(r: Drawing) -> onnx.NodeProto | None:
    name = r.pick(rank=1)
    if name is None:
        return None
    value = r.value(name)
    match r.rng.integers(9):
        case 0:
            return helper.make_node("Transpose", [name], [""], perm=r.rng.permutation(value.ndim).tolist())
        case 1:
            return helper.make_node("Reshape", [name, r.ints(-1)], [""])
        case 2:
            return helper.make_node("Tile", [name, r.ints(*r.rng.integers(1, 4, value.ndim).tolist())], [""])
        case 3:
            shape = [int(r.rng.integers(1, 4)), *(n if n != 1 else int(r.rng.integers(1, 5)) for n in value.shape)]
            return helper.make_node("Expand", [name, r.ints(*shape)], [""])
        case 4:
            return helper.make_node("Shape", [name], [""])
        case 5:
            return helper.make_node("Flatten", [name], [""], axis=int(r.rng.integers(0, value.ndim + 1)))
        case 6:
            axis = int(r.rng.integers(0, value.ndim + 1))
            if r.opset < 13:
                return helper.make_node("Unsqueeze", [name], [""], axes=[axis])
            return helper.make_node("Unsqueeze", [name, r.ints(axis)], [""])
        case 7:
            shift = r.new(np.array(r.rng.integers(-2, 3)))
            return helper.make_node("Trilu", [name, shift], [""], upper=int(r.chance(0.5)))
        case _:
            return helper.make_node("Size", [name], [""])


def made(r: Drawing) -> onnx.NodeProto | None:
    """Constants that a node makes of sizes."""
    match r.rng.integers(4):
        case 0:
            value = numpy_helper.from_array(r.filled((1,), r.choice(["float32", "int64", "bool", "int32"])))
            return helper.make_node("ConstantOfShape", [r.ints(*r.shape(3))], [""], value=value)
        case 1:
            dtype = r.choice(["float32", "int64", "int32"])
            ends = [r.new(np.array(v, dtype)) for v in (int(r.rng.integers(-3, 3)), int(r.rng.integers(4, 20)), 2)]
            return helper.make_node("Range", ends, [""])
        case 2:
            places, values = r.rng.integers(-5, 5, (3, 4)), r.filled((2,), r.choice(["float32", "int64", "int32"]))
            operands = [r.new(places), r.new(np.array(5, np.int64)), r.new(values)]
            return helper.make_node("OneHot", operands, [""], axis=int(r.rng.integers(-1, 3)))
        case _:
            name = r.pick(rank=2)
            if name is None or r.value(name).ndim != 2:
                return None
            return helper.make_node("EyeLike", [name], [""], k=int(r.rng.integers(-2, 3)))
