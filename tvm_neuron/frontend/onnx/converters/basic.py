"""Operators that TVM's importer turns into something slower, larger or more opaque than needed.

TVM reads the variadic Sum, Max, Min and Mean as broadcast, stack and reduce; an accelerator wants the chain of
two-operand instructions it is. Clip, Pad and Tile become kernels of the model's own there, which the partition can't
look into; here they stay operators.
"""

from collections.abc import Callable
from functools import reduce

import numpy as np
from tvm import relax

from tvm_neuron.frontend.onnx.converters.converter import Converter, Node
from tvm_neuron.frontend.onnx.converters.indexing import pad_by_position


def _chain(operator: Callable[[relax.Expr, relax.Expr], relax.Expr]) -> Callable[[Node], relax.Expr]:
    """`operator` applied from left to right over all operands, broadcasting as ONNX does."""
    return lambda node: reduce(lambda left, right: node.emit(operator(left, right)), node.inputs)


def _mean(node: Node) -> relax.Expr:
    """(x0 + x1 + ...) / n."""
    total = _chain(relax.op.add)(node)
    return relax.op.multiply(total, relax.const(1.0 / len(node.inputs), total.ty.dtype))


def _clip(node: Node) -> relax.Expr:
    """min(max(x, low), high), each limit optional: an attribute up to opset 10, an operand since."""
    value = node.inputs[0]
    limits = ((relax.op.maximum, 1, "min"), (relax.op.minimum, 2, "max"))
    for operator, position, name in limits:
        limit = node.given(position)
        if limit is None and name in node.attrs:
            limit = relax.const(node.attrs[name], value.ty.dtype)
        if limit is not None:
            value = node.emit(operator(value, limit))
    return value


def _pad(node: Node) -> relax.Expr | None:
    """Padding by numbers known at import."""
    widths = node.constant(1) if len(node.inputs) > 1 else np.array(node.attrs.get("pads", ()))
    fill = node.constant(2) if node.given(2) is not None else np.array(node.attrs.get("value", 0.0))
    if widths is None or not widths.size or widths.min() < 0:
        return None
    before, after = widths.reshape(2, -1).tolist()
    mode = node.attrs.get("mode", b"constant").decode()
    if mode != "constant":
        return pad_by_position(node, before, after, mode)
    axes = node.constant(3)
    if node.given(3) is not None and (axes is None or not node.is_static()):
        return None
    pairs = [width for pair in zip(before, after, strict=True) for width in pair]
    if axes is not None:
        rank = len(node.shape())
        by_axis = {int(axis) % rank: pair for axis, pair in zip(axes, zip(before, after, strict=True), strict=True)}
        pairs = [width for axis in range(rank) for width in by_axis.get(axis, (0, 0))]
    if fill is not None:
        return relax.op.nn.pad(node.inputs[0], pairs, pad_value=float(fill.reshape(())))
    return _pad_at_run_time(node, pairs) if node.is_static() else None


def _pad_at_run_time(node: Node, pairs: list[int]) -> relax.Expr:
    """Padding with a number that is known at run time only, chosen by a table of what is padding."""
    inside = np.pad(np.ones(node.shape(), np.bool_), list(zip(pairs[::2], pairs[1::2], strict=True)))
    padded = node.emit(relax.op.nn.pad(node.inputs[0], pairs, pad_value=0.0))
    return relax.op.where(relax.const(inside, "bool"), padded, node.inputs[2])


def _tile(node: Node) -> relax.Expr | None:
    """Repetition as often as a constant says."""
    repeats = node.constant(1)
    return None if repeats is None else relax.op.tile(node.inputs[0], repeats.tolist())


def _prelu(node: Node) -> relax.Expr:
    """max(x, 0) + slope * min(x, 0); the slope broadcasts to x, before opset 7 along the channels."""
    value, slope = node.inputs
    if node.opset < 7 and node.shape(1) != (1,):
        slope = node.emit(relax.op.reshape(slope, (-1, *[1] * (len(node.shape()) - 2))))
    zero = relax.const(0, node.dtype())
    below = node.emit(relax.op.multiply(slope, node.emit(relax.op.minimum(value, zero))))
    return relax.op.add(node.emit(relax.op.maximum(value, zero)), below)


CONVERTERS: dict[str, Converter] = {
    "Sum": _chain(relax.op.add),
    "Max": _chain(relax.op.maximum),
    "Min": _chain(relax.op.minimum),
    "Mean": _mean,
    "Clip": _clip,
    "PRelu": _prelu,
    "Pad": _pad,
    "Tile": _tile,
}
