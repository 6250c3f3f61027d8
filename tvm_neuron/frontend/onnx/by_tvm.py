"""by_tvm: one node by the converter of TVM's own importer."""

import contextlib
import io
import re
from typing import Any

import onnx
from tvm import relax
from tvm.relax.frontend.onnx.onnx_frontend import _get_convert_map

from tvm_neuron.errors import ModelError

_PRINTED = re.compile(
    r"T\.int64\((-?\d+)\)|R\.shape\((\[[^]]*\])\)|T\.((?:int|uint|float|bool)\d*)\b"
    r"|^(?:In )?ir\.Op\(.*support_level=\d+\),? |^Check failed: .* is false: |# Metadata omitted\..*?to show it\. "
)
"""Numbers, shapes and dtypes as TVM writes them in programs, and what stands before the sentence."""


def by_tvm(
    bb: relax.BlockBuilder,
    node: onnx.NodeProto,
    inputs: Any,
    attrs: dict[str, Any],
    opset: int,
    weights: dict[str, Any],
) -> relax.Expr:
    """The node's result, a Relax tuple where it has several; `weights` are variables and tensors by name.

    Raises:
        ModelError: TVM has no converter for the operator, or its converter refuses the node.
    """
    if node.op_type not in _get_convert_map():
        raise ModelError("no converter knows the operator")
    convert = _get_convert_map()[node.op_type].get_converter(opset)
    named = attrs | {"tvm_custom": {"name": node.name, "num_outputs": len(node.output)}}
    printed = io.StringIO()  # TVM prints the operands, weights and all, before it raises
    try:
        with contextlib.redirect_stdout(printed):
            converted = convert(bb, inputs, named, [{}, weights])
            return bb.normalize(converted) if isinstance(converted, relax.Expr) else converted
    except Exception as error:
        raise refusal(error) from error


def refusal(error: Exception) -> ModelError:
    """What TVM says of a node that it refuses, as a sentence of ours."""
    return ModelError(told(error))


def told(error: Exception) -> str:
    """The sentence in what TVM raised."""
    reason = next((line for line in reversed(str(error).splitlines()) if line.strip()), type(error).__name__)
    return _PRINTED.sub(r"\1\2\3", reason.strip())
