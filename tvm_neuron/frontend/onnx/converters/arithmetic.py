"""Elementwise operators and index tricks whose edge cases or dtypes TVM's importer gets wrong or refuses."""

from typing import Any

import numpy as np
from tvm import relax

from tvm_neuron.frontend.onnx.converters.casts import target
from tvm_neuron.frontend.onnx.converters.converter import Converter, Node

_POWER_BITS = 7


def _bit_shift(node: Node) -> relax.Expr:
    """a << b or a >> b; shifts by less than 0 or by all bits leave nothing of `a` but, to the right, its sign."""
    a, b = node.inputs
    dtype, bits = node.dtype(), np.iinfo(node.dtype()).bits
    zero, last = relax.const(0, dtype), relax.const(bits - 1, dtype)
    is_inside = node.emit(relax.op.less(b, relax.const(bits, dtype)))
    if not dtype.startswith("u"):
        is_inside = node.emit(relax.op.logical_and(is_inside, node.emit(relax.op.greater_equal(b, zero))))
    amount = node.emit(relax.op.where(is_inside, b, last))
    if node.attrs["direction"] == b"LEFT":
        return relax.op.where(is_inside, node.emit(relax.op.left_shift(a, amount)), zero)
    shifted = node.emit(relax.op.right_shift(a, amount))
    return relax.op.where(is_inside, shifted, zero) if dtype.startswith("u") else shifted


def _mod(node: Node) -> relax.Expr | None:
    """a - b * floor(a / b) for floats, exactly, also where an operand is infinite."""
    a, b = node.inputs
    if node.attrs.get("fmod", 0) or not node.dtype().startswith(("float", "bfloat")):
        return None
    zero = relax.const(0.0, node.dtype())
    rest = node.emit(relax.op.mod(a, b))  # has the sign of a
    signs = [node.emit(relax.op.less(value, zero)) for value in (rest, b)]
    is_other = node.emit(relax.op.logical_xor(*signs))
    is_rest = node.emit(relax.op.not_equal(rest, zero))
    corrected = node.emit(relax.op.add(rest, b))
    return relax.op.where(node.emit(relax.op.logical_and(is_other, is_rest)), corrected, rest)


def _power(node: Node) -> relax.Expr | None:
    """a ** b in the dtype of `a`."""
    a, b = node.inputs
    dtype = node.dtype()
    if "float" in dtype:
        return relax.op.power(a, b if node.dtype(1) == dtype else node.emit(relax.op.astype(b, dtype)))
    if "float" in node.dtype(1):
        working = "float64" if "float64" in node.dtype(1) or dtype.endswith("64") else "float32"
        base, exponent = (node.emit(relax.op.astype(value, working)) for value in (a, b))
        return relax.op.astype(node.emit(relax.op.power(base, exponent)), dtype)
    return _whole_power(node, a, node.emit(relax.op.astype(b, dtype)))


def _whole_power(node: Node, base: relax.Expr, exponent: relax.Expr) -> relax.Expr:
    """base ** exponent of whole numbers by squaring, modulo the dtype's range; of 1 / x the whole part.

    From 2 ** 6 on an exponent stands for 2 ** 6 plus its last bit: only 0, 1 and -1 have a result then.
    """
    dtype = str(base.ty.dtype)

    def const(number: int) -> relax.Expr:
        return relax.const(number, dtype)

    size = exponent if dtype.startswith("u") else node.emit(relax.op.abs(exponent))
    last = node.emit(relax.op.bitwise_and(size, const(1)))
    large = node.emit(relax.op.add(const(64), last))
    size = node.emit(relax.op.where(node.emit(relax.op.less(size, const(64))), size, large))
    result, square = const(1), base
    for bit in range(_POWER_BITS):
        is_set = node.emit(relax.op.bitwise_and(size, const(1 << bit)))
        factor = node.emit(relax.op.where(node.emit(relax.op.not_equal(is_set, const(0))), square, const(1)))
        result = node.emit(relax.op.multiply(result, factor))
        square = node.emit(relax.op.multiply(square, square))
    if dtype.startswith("u"):
        return result
    is_one = node.emit(relax.op.equal(node.emit(relax.op.abs(base)), const(1)))
    is_whole = node.emit(relax.op.logical_or(is_one, node.emit(relax.op.greater_equal(exponent, const(0)))))
    return relax.op.where(is_whole, result, const(0))


def _is_inf(node: Node) -> relax.Expr:
    """Whether an element is an infinity of the signs asked for."""
    x, dtype = node.inputs[0], node.dtype()
    signs = [sign for sign, name in ((np.inf, "positive"), (-np.inf, "negative")) if _flag(node, f"detect_{name}", 1)]
    if len(signs) == 2:
        return relax.op.isinf(x)
    if not signs:
        return relax.op.zeros(node.shape(), "bool")
    return relax.op.equal(x, relax.const(signs[0], dtype))


def _one_hot(node: Node) -> relax.Expr | None:
    """values[1] where the index along the new axis is the element's, values[0] elsewhere."""
    depth = node.constant(1)
    if depth is None:
        return None
    indices, size, dtype = node.inputs[0], int(depth.reshape(())), node.dtype()
    axis = node.attrs.get("axis", -1) % (len(node.shape()) + 1)
    indices = node.emit(relax.op.expand_dims(indices, axis))
    places = np.arange(size).reshape([size if at == axis else 1 for at in range(len(node.shape()) + 1)])
    is_hot = node.emit(relax.op.equal(indices, relax.const(places.astype(dtype), dtype)))
    if not dtype.startswith("u"):  # negative ones count from the end
        is_hot_behind = node.emit(relax.op.equal(indices, relax.const((places - size).astype(dtype), dtype)))
        is_hot = node.emit(relax.op.logical_or(is_hot, is_hot_behind))
    off, on = (
        node.emit(relax.op.reshape(node.emit(relax.op.strided_slice(node.inputs[2], [0], [at], [at + 1])), ()))
        for at in (0, 1)
    )
    return relax.op.where(is_hot, on, off)


def _eye_like(node: Node) -> relax.Expr:
    """Ones on diagonal `k`, in the operand's dtype or the one asked for."""
    dtype = target(node.attrs["dtype"]) if "dtype" in node.attrs else node.dtype()
    rows, columns = node.shape()
    return relax.const(np.eye(rows, columns, k=node.attrs.get("k", 0)).astype(dtype), dtype)


def _cum_prod(node: Node) -> relax.Expr | None:
    """Products of the elements up to each, or with `exclusive` before each."""
    axis, x = node.constant(1), node.inputs[0]
    if axis is None:
        return None
    at = int(axis.reshape(())) % len(node.shape())
    x = node.emit(relax.op.flip(x, at)) if _flag(node, "reverse", 0) else x
    result = node.emit(relax.op.cumprod(x, at, node.dtype(), bool(_flag(node, "exclusive", 0))))
    return relax.op.flip(result, at) if _flag(node, "reverse", 0) else result


def _space_to_depth(node: Node) -> relax.Expr:
    """Blocks of space as channels, the block's place before (DCR) or after (CRD) the channel."""
    batch, channels, height, width = node.shape()
    size = node.attrs["blocksize"]
    split = node.emit(
        relax.op.reshape(node.inputs[0], (batch, channels, height // size, size, width // size, size))
    )
    order = [0, 1, 3, 5, 2, 4] if node.attrs.get("mode", b"DCR") == b"CRD" else [0, 3, 5, 1, 2, 4]
    moved = node.emit(relax.op.permute_dims(split, order))
    return relax.op.reshape(moved, (batch, channels * size * size, height // size, width // size))


def _flag(node: Node, name: str, default: int) -> Any:
    return node.attrs.get(name, default)


CONVERTERS: dict[str, Converter] = {
    "BitShift": _bit_shift,
    "CumProd": _cum_prod,
    "EyeLike": _eye_like,
    "IsInf": _is_inf,
    "Mod": _mod,
    "OneHot": _one_hot,
    "Pow": _power,
    "SpaceToDepth": _space_to_depth,
}
