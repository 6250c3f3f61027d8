"""GroupNormalization, and torch's form of it: InstanceNormalization of a tensor whose groups were merged before."""

import tvm
from tvm import relax

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.decompose.shapes import static_shape
from tvm_neuron.frontend.onnx.converters.converter import Converter, Node


def _group_normalization(node: Node) -> relax.Expr:
    """Up to opset 20, scale and bias have an element for each group, then for each channel."""
    data, scale, bias = node.inputs
    channels, groups = node.shape()[1], node.attrs["num_groups"]
    if groups < 1 or channels % groups:
        raise ModelError(f"its num_groups is {groups}; it must divide the {channels} channels")
    if node.opset < 21:
        scale, bias = _repeated(node, scale, channels), _repeated(node, bias, channels)
    return _normalized(node, data, scale, bias, groups)


def _instance_normalization(node: Node) -> relax.Expr | None:
    """Of [N, C, ...] reshaped to [N, G, -1]: the norm of G groups of channels, reshaped."""
    if not node.is_static() or not isinstance(node.inputs[0], relax.Var):
        return None
    made = node.bb.lookup_binding(node.inputs[0])
    if not isinstance(made, relax.Call) or made.op != tvm.ir.Op.get("relax.reshape"):
        return None
    data, groups = made.args[0], node.shape()[1]
    shape = static_shape(data)
    if shape is None or len(shape) < 2 or 0 in shape or shape[0] != node.shape()[0] or shape[1] % groups:
        return None
    scale, bias = (_repeated(node, node.inputs[at], shape[1]) for at in (1, 2))
    return relax.op.reshape(node.emit(_normalized(node, data, scale, bias, groups)), node.shape())


def _repeated(node: Node, factors: relax.Expr, channels: int) -> relax.Expr:
    """Of each channel that of its group."""
    groups = int(factors.ty.shape[0])
    column = node.emit(relax.op.reshape(factors, [groups, 1]))
    rows = node.emit(relax.op.broadcast_to(column, [groups, channels // groups]))
    return node.emit(relax.op.reshape(rows, [channels]))


def _normalized(node: Node, data: relax.Expr, scale: relax.Expr, bias: relax.Expr, groups: int) -> relax.Expr:
    axes, dtype = list(range(2, len(data.ty.shape))), str(data.ty.dtype)
    operands = [data, scale, bias]
    if dtype == "bfloat16":  # which Relax's operator refuses; it computes in float32 anyway
        operands = [node.emit(relax.op.astype(each, "float32")) for each in operands]
    normal = relax.op.nn.group_norm(*operands, groups, 1, axes, node.attrs.get("epsilon", 1e-5))
    return relax.op.astype(node.emit(normal), dtype) if dtype == "bfloat16" else normal


CONVERTERS: dict[str, Converter] = {
    "GroupNormalization": _group_normalization,
    "InstanceNormalization": _instance_normalization,
}
