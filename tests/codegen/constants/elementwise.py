"""Nodes that compute element by element, and products of matrices."""

import numpy as np
import onnx
from onnx import helper

from tests.codegen.constants.drawing import FLOATS, INTEGERS, OF_SMALL, Drawing, broadcasts

_CODES = {name: helper.np_dtype_to_tensor_dtype(np.dtype(name)) for name in (*FLOATS, *INTEGERS, "bool")}
_UNARY = (
    "Abs", "Neg", "Sqrt", "Exp", "Log", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh",
    "Atanh", "Tanh", "Sigmoid", "Erf", "Floor", "Ceil", "Round", "Reciprocal", "Relu", "LeakyRelu", "Elu", "Celu",
    "Selu", "Softplus", "Softsign", "HardSigmoid", "HardSwish", "Mish", "Gelu", "ThresholdedRelu", "Sign", "IsNaN",
    "IsInf", "Not", "BitwiseNot", "Identity", "Shrink",
)  # fmt: skip
_BINARY = (
    "Add", "Sub", "Mul", "Div", "Pow", "Mod", "Min", "Max", "Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual",
    "And", "Or", "Xor", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitShift", "PRelu", "Sum", "Mean",
)  # fmt: skip


def unary(r: Drawing) -> onnx.NodeProto | None:
    name, op = r.pick(), r.choice(_UNARY)
    if name is None or (op == "Sign" and r.has_nan(name)):
        return None
    if op in OF_SMALL and not r.is_small(name):
        return None
    return helper.make_node(op, [name], [""])


def binary(r: Drawing) -> onnx.NodeProto | None:
    name = r.pick()
    op = r.choice(_BINARY)
    if name is None:
        return None
    other = r.like(name)
    value = r.value(other)
    attributes = {}
    dtype = value.dtype
    if op == "PRelu" and not np.all(np.isfinite(value)):
        return None  # a slope is multiplied by zero where it does not count
    if dtype.kind in "iu" and op in ("Div", "Mod", "Pow", "BitShift"):  # without what C++ leaves open
        if dtype.kind == "i" and np.any(r.value(name) == np.iinfo(dtype).min):
            return None
        is_divisor = op in ("Div", "Mod")
        amounts = np.abs(value.astype(np.int64)) % 6 + is_divisor
        signs = r.rng.choice([-1, 1], value.shape) if is_divisor and dtype.kind == "i" else 1
        other = r.new((amounts * signs).astype(dtype))
    if op == "BitShift":
        attributes["direction"] = r.choice(["LEFT", "RIGHT"])
    if op == "Mod":
        attributes["fmod"] = int(dtype.kind == "f" or r.chance(0.3))
    operands = [name, other, name] if op == "Sum" and r.chance(0.5) else [name, other]
    return helper.make_node(op, operands, [""], **attributes)


def where(r: Drawing) -> onnx.NodeProto | None:
    name = r.pick()
    if name is None:
        return None
    shape = r.value(name).shape
    condition = r.pick("bool")
    if condition is None or not broadcasts(r.value(condition).shape, shape) or r.chance(0.5):
        condition = r.new(r.filled([n if r.chance(0.8) else 1 for n in shape], "bool"))
    operands = [name, r.like(name)]
    return helper.make_node("Where", [condition, *(operands if r.chance(0.5) else operands[::-1])], [""])


def clip(r: Drawing) -> onnx.NodeProto | None:
    name = r.pick()
    if name is None:
        return None
    dtype = r.value(name).dtype
    low = r.new(np.array(1 if dtype.kind == "u" else -2, dtype))
    high = r.new(np.array(5, dtype))
    if not r.is_small(name):
        return helper.make_node("Clip", [name, low, high], [""])
    return helper.make_node("Clip", r.choice([[name, low, high], [name, "", high], [name, low]]), [""])


def cast(r: Drawing) -> onnx.NodeProto | None:
    name = r.pick()
    target = r.dtype()
    if name is None:
        return None
    value = r.value(name)
    if value.dtype.kind == "f" and target != "bool" and target not in FLOATS:
        limits = np.iinfo(target)
        low, high = (0, 100) if target.startswith("u") else (-100, 100)
        if not np.all(np.isfinite(value)) or np.any(value < low) or np.any(value > min(high, limits.max)):
            return None  # what C++ leaves open
    return helper.make_node("Cast", [name], [""], to=_CODES[target])


def quantise(r: Drawing) -> onnx.NodeProto | None:
    name = r.pick("float32", "int8", "uint8", rank=1)
    if name is None:
        return None
    value = r.value(name)
    axis = r.axis(name) % value.ndim
    shape = () if r.chance(0.5) or r.opset < 13 else (value.shape[axis],)
    scale = r.new(r.rng.uniform(0.01, 2, shape).astype(np.float32))
    attributes = {"axis": axis} if r.opset >= 13 else {}
    if value.dtype.kind == "f":
        if not np.all(np.abs(value) < 1e6):
            return None
        zero = r.new(r.rng.integers(0, 90, shape).astype(r.choice(["int8", "uint8"])))
        return helper.make_node("QuantizeLinear", [name, scale, zero], [""], **attributes)
    zero = r.new(r.rng.integers(0, 90, shape).astype(value.dtype))
    return helper.make_node("DequantizeLinear", [name, scale, zero][: 3 if r.chance(0.8) else 2], [""], **attributes)


def products(r: Drawing) -> onnx.NodeProto | None:
    name = r.pick("float32", "float64", "int32", rank=2)
    if name is None:
        return None
    value = r.value(name)
    if not np.all(np.abs(value.astype(float)) < 1e4):
        return None
    depth = value.shape[-1]
    other = r.new(r.filled((depth, int(r.rng.integers(1, 9))), value.dtype.name))
    if not np.all(np.abs(r.value(other).astype(float)) < 1e4):
        return None
    if value.ndim == 2 and value.dtype.kind == "f" and r.chance(0.4):
        scales = {"alpha": 0.5, "beta": 2.0}
        return helper.make_node("Gemm", [name, other], [""], **scales)
    return helper.make_node("MatMul", [name, other], [""])
