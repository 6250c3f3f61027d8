"""evaluate: one ONNX node on known arrays, by the onnx package's own reference operators."""

import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any, TypeGuard

import numpy as np
import onnx
from ml_dtypes import bfloat16
from onnx.reference.ops import load_op

_MOST_ELEMS = 1 << 16
"""Operands together; more is no shape arithmetic but weights, which the code generator folds."""

_MOST_RESULT_ELEMS = 1 << 20

_MOVING = {"Concat", "Expand", "Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"}
_MOST_MOVED_ELEMS = 1 << 23
"""Of whole numbers: the places of all elements of a slice that is assigned to, which exporters write out, are many."""

_RANDOM = {
    "Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
}  # fmt: skip

_INEXACT = {
    "AveragePool", "BatchNormalization", "Flatten", "GlobalMaxPool", "Hardmax", "LRN", "LogSoftmax",
    "LpNormalization", "MaxPool", "OneHot", "PRelu", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare", "Softmax",
}  # fmt: skip
"""The reference loses NaN, infinities, digits or channels in these, or has another dtype, shape or meaning than the
opset."""


_OF_BITS = {"BitCast"}
"""What an operand's bits mean is another number in another dtype."""


def is_evaluated(node: onnx.NodeProto, inputs: Sequence[np.ndarray | None]) -> bool:
    """Whether the node is small arithmetic without a state, on operands that are all known."""
    if node.op_type in _RANDOM | _INEXACT or any(attribute.HasField("g") for attribute in node.attribute):
        return False
    elems, result_elems = sum(value.size for value in inputs if value is not None), _result_elems(node, inputs)
    if node.op_type in _MOVING and all(value is None or value.dtype.kind in "iu" for value in inputs):
        return max(elems, result_elems) <= _MOST_MOVED_ELEMS
    return elems <= _MOST_ELEMS and result_elems <= _MOST_RESULT_ELEMS


def evaluate(node: onnx.NodeProto, inputs: Sequence[np.ndarray | None], opset: int) -> list[np.ndarray] | None:
    """The node's outputs; None where the reference has no such operator or can't take these operands.

    What is of 16 bits is computed in float32 and rounded at the end, as it is at run time: the reference rounds every
    step of its arithmetic, which leaves no digit of a Gelu far below 0.
    """
    operator = _operator(node.domain, node.op_type, opset)
    if operator is None:
        return None
    results = _run(operator, node, inputs, opset)
    if results is None or node.op_type in _OF_BITS or not any(map(_is_half, (*inputs, *results))):
        return results
    wide = _run(operator, node, [value.astype(np.float32) if _is_half(value) else value for value in inputs], opset)
    if wide is None:
        return results
    return [
        better.astype(result.dtype) if _is_half(result) and better.shape == result.shape else result
        for result, better in zip(results, wide, strict=True)
    ]


def _is_half(value: np.ndarray | None) -> TypeGuard[np.ndarray]:
    return value is not None and value.dtype in (np.float16, bfloat16)


def _run(
    operator: type[onnx.reference.op_run.OpRun], node: onnx.NodeProto, inputs: Sequence[np.ndarray | None], opset: int
) -> list[np.ndarray] | None:
    run_params: dict[str, Any] = {
        "log": lambda *_: None, "opsets": {node.domain: opset}, "verbose": 0, "new_ops": None,
        "existing_functions": {}, "evaluator_cls": onnx.reference.ReferenceEvaluator,
    }  # fmt: skip
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):  # what has no finite value has that of IEEE 754
            warnings.simplefilter("ignore")
            results = operator(node, run_params).run(*inputs)
    except Exception:  # whatever the reference fails with, what comes after it says what is wrong with the node
        return None
    return [np.asarray(result) for result in results] if _are_arrays(results) else None


def _are_arrays(results: Sequence[Any]) -> bool:
    return all(isinstance(result, np.ndarray | np.generic) for result in results)


def _result_elems(node: onnx.NodeProto, inputs: Sequence[np.ndarray | None]) -> int:
    """A bound of the result's size, for operators that make much of little."""
    operand = inputs[1] if node.op_type in ("Expand", "Tile") and len(inputs) > 1 else None
    if node.op_type == "ConstantOfShape":
        operand = inputs[0]
    if operand is None or operand.dtype.kind not in "iu":
        return 0
    grown = int(np.prod(operand.astype(np.float64)))
    return grown * inputs[0].size if node.op_type == "Tile" and inputs[0] is not None else grown


@cache
def _operator(domain: str, op_type: str, opset: int) -> Any:
    try:
        return load_op(domain, op_type, opset, evaluator_cls=onnx.reference.ReferenceEvaluator)
    except (RuntimeError, ValueError, KeyError):
        return None
