"""ONNX operators that TVM's importer turns into something slower, larger or more opaque than needed.

TVM reads the variadic Sum, Max, Min and Mean as broadcast, stack and reduce; an accelerator wants the chain of
two-operand instructions it is. Clip, Pad and Tile become kernels of the model's own there, which the partition can't
look into; here they stay operators. A converter gives None for a form that TVM's importer shall take.
"""

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import tvm
from tvm import relax

Converter = Callable[[relax.BlockBuilder, list[relax.Expr], dict[str, Any]], relax.Expr | None]


def _chain(
    operator: Callable[[relax.Expr, relax.Expr], relax.Expr],
) -> Callable[[relax.BlockBuilder, list[relax.Expr], dict[str, Any]], relax.Expr]:
    """`operator` applied from left to right over all operands, broadcasting as ONNX does."""

    def convert(bb: relax.BlockBuilder, inputs: list[relax.Expr], _attrs: dict[str, Any]) -> relax.Expr:
        return reduce(lambda left, right: bb.normalize(operator(left, right)), inputs)

    return convert


def _mean(bb: relax.BlockBuilder, inputs: list[relax.Expr], attrs: dict[str, Any]) -> relax.Expr:
    """(x0 + x1 + ...) / n."""
    total = _chain(relax.op.add)(bb, inputs, attrs)
    return relax.op.multiply(total, relax.const(1.0 / len(inputs), total.ty.dtype))


def _constant(inputs: list[relax.Expr], position: int) -> np.ndarray | None:
    """A constant operand's value; None where it is left out or known at run time only."""
    value = inputs[position] if position < len(inputs) else None
    return value.value.numpy() if isinstance(value, tvm.ir.GenericConst) else None


def _clip(bb: relax.BlockBuilder, inputs: list[relax.Expr], attrs: dict[str, Any]) -> relax.Expr:
    """min(max(x, low), high), each limit optional: an attribute up to opset 10, an operand since."""
    value = inputs[0]
    limits = ((relax.op.maximum, 1, "min"), (relax.op.minimum, 2, "max"))
    for operator, position, name in limits:
        limit = inputs[position] if position < len(inputs) else None
        if limit is None and name in attrs:
            limit = relax.const(attrs[name], value.ty.dtype)
        if limit is not None:
            value = bb.normalize(operator(value, limit))
    return value


def _pad(_bb: relax.BlockBuilder, inputs: list[relax.Expr], attrs: dict[str, Any]) -> relax.Expr | None:
    """Padding with a constant, by numbers known at import."""
    widths = _constant(inputs, 1) if len(inputs) > 1 else np.array(attrs.get("pads", ()))
    fill = _constant(inputs, 2) if len(inputs) > 2 and inputs[2] is not None else np.array(attrs.get("value", 0.0))
    is_plain = attrs.get("mode", b"constant") == b"constant" and (len(inputs) < 4 or inputs[3] is None)
    if widths is None or fill is None or not is_plain or not widths.size or widths.min() < 0:
        return None
    before, after = widths.reshape(2, -1).tolist()
    pairs = [width for pair in zip(before, after, strict=True) for width in pair]
    return relax.op.nn.pad(inputs[0], pairs, pad_value=float(fill.reshape(())))


def _tile(_bb: relax.BlockBuilder, inputs: list[relax.Expr], _attrs: dict[str, Any]) -> relax.Expr | None:
    """Repetition as often as a constant says."""
    repeats = _constant(inputs, 1)
    return None if repeats is None else relax.op.tile(inputs[0], repeats.tolist())


CONVERTERS: dict[str, Converter] = {
    "Sum": _chain(relax.op.add),
    "Max": _chain(relax.op.maximum),
    "Min": _chain(relax.op.minimum),
    "Mean": _mean,
    "Clip": _clip,
    "Pad": _pad,
    "Tile": _tile,
}
