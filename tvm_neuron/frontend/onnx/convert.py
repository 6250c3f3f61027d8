"""One node by a converter, ours or TVM's."""

from typing import Any

import onnx
from onnx import helper
from tvm import relax
from tvm.relax.frontend.onnx.onnx_frontend import onnx_input

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.onnx.by_tvm import by_tvm
from tvm_neuron.frontend.onnx.converters import CONVERTERS, Node
from tvm_neuron.frontend.onnx.narrow import NARROW_OPERATORS, Narrow
from tvm_neuron.frontend.onnx.pitfalls import pitfall
from tvm_neuron.frontend.onnx.state import State
from tvm_neuron.frontend.onnx.values import Known, Value
from tvm_neuron.runtime.tensors import CARRIERS


def converted(state: State, node: onnx.NodeProto, operands: list[Value], opset: int) -> list[Value]:
    """The outputs by a converter of ours or TVM's."""
    if any(isinstance(value, list) for value in operands):
        raise ModelError("it takes a sequence, which only operators on sequences can")
    inputs = onnx_input([_expr(value, node.op_type) for value in operands])
    attrs = _attributes(node)
    if node.op_type in CONVERTERS:
        result = CONVERTERS[node.op_type](Node(state.bb, list(inputs), attrs, opset, len(node.output)))
        if isinstance(result, Narrow):
            return [result]
        if result is not None:
            return _outputs(state, state.bb.normalize(result), len(node.output))
    reason = pitfall(node, state.scopes.known)
    if reason:
        raise ModelError(f"{reason}; TVM's importer would compute it wrongly")
    return _outputs(state, by_tvm(state.bb, node, inputs, attrs, opset, state.weight_vars), len(node.output))


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
