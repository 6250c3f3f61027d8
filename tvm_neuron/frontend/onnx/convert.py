"""One node by a converter, ours or TVM's."""

import contextlib
from typing import Any

import onnx
import tvm
from onnx import helper
from tvm import relax
from tvm.relax.frontend.onnx.onnx_frontend import onnx_input

from tvm_neuron.errors import InternalError, ModelError
from tvm_neuron.frontend.onnx.by_tvm import by_tvm, refusal
from tvm_neuron.frontend.onnx.converters import CONVERTERS, Node
from tvm_neuron.frontend.onnx.functions import float_defaults
from tvm_neuron.frontend.onnx.narrow import NARROW_OPERATORS, Narrow
from tvm_neuron.frontend.onnx.pitfalls import pitfall
from tvm_neuron.frontend.onnx.shapes import as_tensor, is_shape
from tvm_neuron.frontend.onnx.state import State
from tvm_neuron.frontend.onnx.values import Known, Value
from tvm_neuron.runtime.tensors import CARRIERS

_UNFIT = (tvm.error.InternalError, IndexError, TypeError, ValueError, ZeroDivisionError)
"""What TVM and NumPy raise of shapes, axes or dtypes that do not fit together."""


def converted(state: State, node: onnx.NodeProto, operands: list[Value], opset: int) -> list[Value]:
    """The outputs by a converter of ours or TVM's."""
    if any(isinstance(value, list) for value in operands):
        raise ModelError("it takes a sequence, which only operators on sequences can")
    attrs = float_defaults(node, opset) | _attributes(node)
    if any(is_shape(value) for value in operands):
        with contextlib.suppress(ModelError):  # TVM's converters take some shapes as they are, and others as tensors
            return _by_tvm(state, node, operands, attrs, opset)
        operands = [state.bb.normalize(as_tensor(value)) if is_shape(value) else value for value in operands]
    if node.op_type in CONVERTERS:
        result = _by_ours(state, node, operands, attrs, opset)
        if isinstance(result, Narrow):
            return [result]
        if result is not None:
            return _outputs(state, result, len(node.output))
    reason = pitfall(node, state.scopes.known)
    if reason:
        raise ModelError(f"{reason}; TVM's importer would compute it wrongly")
    return _by_tvm(state, node, operands, attrs, opset)


def _by_ours(
    state: State, node: onnx.NodeProto, operands: list[Value], attrs: dict[str, Any], opset: int
) -> relax.Expr | Narrow | None:
    try:
        result = CONVERTERS[node.op_type](
            Node(state.bb, list(_inputs(node, operands)), attrs, opset, len(node.output), state.producer)
        )
        return state.bb.normalize(result) if isinstance(result, relax.Expr) else result
    except (*_UNFIT, InternalError) as error:
        raise refusal(error) from error


def _by_tvm(
    state: State, node: onnx.NodeProto, operands: list[Value], attrs: dict[str, Any], opset: int
) -> list[Value]:
    made = by_tvm(state.bb, node, _inputs(node, operands), attrs, opset, state.weight_vars)
    return _outputs(state, made, len(node.output))


def _inputs(node: onnx.NodeProto, operands: list[Value]) -> Any:
    return onnx_input([_expr(value, node.op_type) for value in operands])


def _outputs(state: State, value: relax.Expr, count: int) -> list[Value]:
    if not isinstance(value.ty, relax.TupleType):
        return [value]
    if isinstance(value, relax.Tuple):
        fields = list(value.fields)
    else:
        whole = value if isinstance(value, relax.Var) else state.bb.emit(value)
        fields = [state.bb.emit(relax.TupleGetItem(whole, index)) for index in range(len(value.ty.fields))]
    if len(fields) < count:
        raise ModelError(f"its converter makes {len(fields)} of its {count} outputs")
    return fields


def _expr(value: Value, op: str) -> Any:
    """An operand as a converter takes it; one of a dtype narrower than a byte as it is, where the converter can."""
    if isinstance(value, Known) and value.array.dtype.name in CARRIERS:
        value = Narrow(value.expr, value.array.dtype.name)
    if isinstance(value, Narrow) and op not in NARROW_OPERATORS:
        raise ModelError(
            f"it takes {value.dtype}, which {', '.join(NARROW_OPERATORS)} alone can: neither TVM nor the core computes "
            "in less than a byte; put a Cast before it"
        )
    return value.expr if isinstance(value, Known) else value


def _attributes(node: onnx.NodeProto) -> dict[str, Any]:
    found = {each.name: helper.get_attribute_value(each) for each in node.attribute}
    return {name: tuple(value) if isinstance(value, list) else value for name, value in found.items()}
