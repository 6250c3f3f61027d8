"""ONNX operators that TVM's importer turns into something slower or larger than needed.

TVM reads the variadic Sum, Max, Min and Mean as broadcast, stack and reduce; an accelerator wants the chain of
two-operand instructions it is.
"""

from collections.abc import Callable
from functools import reduce
from typing import Any

from tvm import relax

Converter = Callable[[relax.BlockBuilder, list[relax.Expr], dict[str, Any]], relax.Expr]


def _chain(operator: Callable[[relax.Expr, relax.Expr], relax.Expr]) -> Converter:
    """`operator` applied from left to right over all operands, broadcasting as ONNX does."""

    def convert(bb: relax.BlockBuilder, inputs: list[relax.Expr], _attrs: dict[str, Any]) -> relax.Expr:
        return reduce(lambda left, right: bb.normalize(operator(left, right)), inputs)

    return convert


def _mean(bb: relax.BlockBuilder, inputs: list[relax.Expr], attrs: dict[str, Any]) -> relax.Expr:
    """(x0 + x1 + ...) / n."""
    total = _chain(relax.op.add)(bb, inputs, attrs)
    return relax.op.multiply(total, relax.const(1.0 / len(inputs), total.ty.dtype))


CONVERTERS: dict[str, Converter] = {
    "Sum": _chain(relax.op.add),
    "Max": _chain(relax.op.maximum),
    "Min": _chain(relax.op.minimum),
    "Mean": _mean,
}
