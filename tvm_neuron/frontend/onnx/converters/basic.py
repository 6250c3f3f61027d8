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
    """Padding with a constant, by numbers known at import."""
    widths = node.constant(1) if len(node.inputs) > 1 else np.array(node.attrs.get("pads", ()))
    fill = node.constant(2) if node.given(2) is not None else np.array(node.attrs.get("value", 0.0))
    is_plain = node.attrs.get("mode", b"constant") == b"constant" and node.given(3) is None
    if widths is None or fill is None or not is_plain or not widths.size or widths.min() < 0:
        return None
    before, after = widths.reshape(2, -1).tolist()
    pairs = [width for pair in zip(before, after, strict=True) for width in pair]
    return relax.op.nn.pad(node.inputs[0], pairs, pad_value=float(fill.reshape(())))


def _tile(node: Node) -> relax.Expr | None:
    """Repetition as often as a constant says."""
    repeats = node.constant(1)
    return None if repeats is None else relax.op.tile(node.inputs[0], repeats.tolist())


CONVERTERS: dict[str, Converter] = {
    "Sum": _chain(relax.op.add),
    "Max": _chain(relax.op.maximum),
    "Min": _chain(relax.op.minimum),
    "Mean": _mean,
    "Clip": _clip,
    "Pad": _pad,
    "Tile": _tile,
}
