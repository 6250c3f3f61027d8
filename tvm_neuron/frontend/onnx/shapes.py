"""Shapes that only the data tell: expressions of sizes as long as shapes are made of them, tensors for all else."""

from typing import Any

import onnx
import tvm
from tvm import relax

from tvm_neuron.frontend.onnx.state import State, bind_result
from tvm_neuron.frontend.onnx.values import Value
from tvm_neuron.frontend.origin import Origin

OF_SHAPES = (
    "Reshape", "Resize", "ConstantOfShape", "Gather", "Slice", "Shape", "Expand", "Concat", "Where", "Cast", "CastLike",
    "Squeeze",
)  # fmt: skip
"""Operators whose converters in TVM take a shape; that of Equal does and is wrong."""
_OF_SIZES = (*OF_SHAPES, "Add", "Sub", "Mul", "Div", "Unsqueeze")
"""Those that take one size of it."""


def is_shape(value: Value) -> bool:
    """Whether the value is a shape, or one size of it, and no tensor."""
    return isinstance(value, relax.Expr) and isinstance(value.ty, relax.ShapeType | tvm.ir.PrimType)


def takes_shapes(op: str, value: Value) -> bool:
    """Whether TVM's converter of an operator takes the shape or size as it is."""
    return op in (OF_SHAPES if isinstance(value.ty, relax.ShapeType) else _OF_SIZES)


def as_tensor(value: Value) -> Value:
    """A shape as a vector, one size as a scalar of int64; any other value as it is."""
    if not is_shape(value):
        return value
    if isinstance(value.ty, relax.ShapeType):
        return relax.op.shape_to_tensor(value)
    return relax.op.reshape(relax.op.shape_to_tensor(relax.ShapeExpr([value])), ())


def with_tensors(state: State, node: onnx.NodeProto, origin: Origin) -> onnx.NodeProto:
    """The node with tensors for those operands that are shapes and that its converter would not take as such."""
    named = {name: state.scopes[name] for name in node.input}
    changed = {name for name, value in named.items() if is_shape(value) and not takes_shapes(node.op_type, value)}
    if not changed:
        return node
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    for at, name in enumerate(node.input):
        if name in changed:
            copy.input[at] = f"{name}.neuron_tensor"
            if copy.input[at] not in state.scopes:
                tensor: Any = state.bb.normalize(as_tensor(named[name]))
                bind_result(state, copy.input[at], tensor, origin, state.scopes.needs(name))
    return copy
