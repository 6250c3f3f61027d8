"""Forms that TVM's converters or kernels take once they are stated otherwise."""

from typing import Any

import numpy as np
from tvm import relax
from tvm.relax.frontend.onnx.onnx_frontend import _get_convert_map, onnx_input

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.onnx.converters.converter import Converter, Node
from tvm_neuron.frontend.onnx.converters.padding import padding


def _by_tvm(node: Node, op: str, inputs: list[Any], attrs: dict[str, Any]) -> relax.Expr:
    named = attrs | {"tvm_custom": {"name": op, "num_outputs": node.outputs}}
    return _get_convert_map()[op].get_converter(node.opset)(node.bb, onnx_input(inputs), named, [{}, {}])


def _convolution(node: Node) -> relax.Expr | None:
    """`auto_pad` as the pads that it stands for, which then come at compile time."""
    if not node.attrs.get("auto_pad", b"NOTSET").startswith(b"SAME") or not (node.is_static() and node.is_static(1)):
        return None
    sizes, kernel = node.shape()[2:], node.shape(1)[2:]
    strides, dilations = (node.attrs.get(name, (1,) * len(sizes)) for name in ("strides", "dilations"))
    extents = [(size - 1) * dilation + 1 for size, dilation in zip(kernel, dilations, strict=True)]
    pads = tuple(padding(node.attrs, sizes, extents, strides))
    attrs = {name: value for name, value in node.attrs.items() if name != "auto_pad"}
    return _by_tvm(node, "Conv", list(node.inputs), attrs | {"pads": pads, "kernel_shape": kernel})


def _conv_transpose(node: Node) -> relax.Expr | None:
    """`output_shape` as the pads that give it."""
    if not node.attrs.get("output_shape"):
        return None
    sizes, kernel = node.shape()[2:], node.shape(1)[2:]
    rank = len(sizes)
    wanted = node.attrs["output_shape"][-rank:]
    strides, dilations = (node.attrs.get(name, (1,) * rank) for name in ("strides", "dilations"))
    extra = node.attrs.get("output_padding", (0,) * rank)
    totals = [
        strides[at] * (sizes[at] - 1) + extra[at] + (kernel[at] - 1) * dilations[at] + 1 - wanted[at]
        for at in range(rank)
    ]
    if min(totals) < 0:  # what no window reaches holds the bias alone
        extra = tuple(more + max(-total, 0) for more, total in zip(extra, totals, strict=True))
        if any(more >= max(step, dilation) for more, step, dilation in zip(extra, strides, dilations, strict=True)):
            raise ModelError(f"its output_shape {list(wanted)} is larger than its strides and dilations allow")
        totals = [max(total, 0) for total in totals]
    smaller, larger = [total // 2 for total in totals], [total - total // 2 for total in totals]
    is_upper = node.attrs.get("auto_pad", b"NOTSET") == b"SAME_UPPER"
    pads = (*smaller, *larger) if is_upper else (*larger, *smaller)
    attrs = {name: value for name, value in node.attrs.items() if name not in ("output_shape", "auto_pad")}
    attrs |= {"pads": pads, "output_padding": tuple(extra), "kernel_shape": kernel}
    return _by_tvm(node, "ConvTranspose", list(node.inputs), attrs)


def _top_k(node: Node) -> relax.Expr | None:
    """The k largest or smallest of unsigned numbers, ranked as signed ones of the same order."""
    dtype, count = node.dtype(), node.constant(1)
    if dtype not in ("uint16", "uint32", "uint64") or count is None:
        return None
    x = node.inputs[0]
    top = relax.const(np.array(1 << 63, np.uint64), "uint64")
    x = node.emit(relax.op.bitwise_xor(x, top)) if dtype == "uint64" else x
    signed = node.emit(relax.op.astype(x, "int64"))
    axis, is_largest = node.attrs.get("axis", -1) % len(node.shape()), bool(node.attrs.get("largest", 1))
    found = node.bb.emit(relax.op.topk(signed, int(count.reshape(())), axis, "both", is_largest, "int64"))
    values = node.emit(relax.op.astype(node.emit(relax.TupleGetItem(found, 0)), dtype))
    values = node.emit(relax.op.bitwise_xor(values, top)) if dtype == "uint64" else values
    return relax.Tuple([values, node.emit(relax.TupleGetItem(found, 1))])


def _extreme_of_bool(node: Node, reduce: Any) -> relax.Expr | None:
    """The maximum or minimum of truth values, as of numbers."""
    if node.dtype() != "bool":
        return None
    given = node.constant(1)
    axes = node.attrs.get("axes") if given is None else given.tolist()
    if not axes and node.attrs.get("noop_with_empty_axes", 0):
        return node.inputs[0]
    numbers = node.emit(relax.op.astype(node.inputs[0], "int8"))
    found = node.emit(reduce(numbers, list(axes) if axes else None, keepdims=bool(node.attrs.get("keepdims", 1))))
    return relax.op.astype(found, "bool")


def _slice(node: Node) -> relax.Expr | None:
    """What operator sets before 10 give as attributes, as operands."""
    if "starts" not in node.attrs:
        return None
    starts, ends = node.attrs["starts"], node.attrs["ends"]
    axes = node.attrs.get("axes", tuple(range(len(starts))))
    return _by_tvm(node, "Slice", [node.inputs[0], *(relax.const(list(v), "int64") for v in (starts, ends, axes))], {})


def _unsqueeze(node: Node) -> relax.Expr | None:
    """A single axis that comes as a number, as a list of one."""
    axes = node.constant(1)
    if axes is None or axes.ndim:
        return None
    return _by_tvm(node, "Unsqueeze", [node.inputs[0], relax.const(axes.reshape(1))], {})


def _max_unpool(node: Node) -> relax.Expr | None:
    """To a given shape: zeros after what the pooling would have covered, which its positions count in."""
    if node.given(2) is None:
        return None
    shape = node.constant(2)
    covered = node.emit(_by_tvm(node, "MaxUnpool", [*node.inputs[:2], None], node.attrs))
    sizes = [int(size) for size in covered.ty.shape]
    if shape is None or any(wanted < size for wanted, size in zip(shape.tolist(), sizes, strict=True)):
        found = "known at run time only" if shape is None else f"{shape.tolist()}"
        raise ModelError(f"its output shape is {found}; only constant shapes from {sizes} on can be made")
    pairs = [pad for wanted, size in zip(shape.tolist(), sizes, strict=True) for pad in (0, wanted - size)]
    return relax.op.nn.pad(covered, pairs)


CONVERTERS: dict[str, Converter] = {
    "Conv": _convolution,
    "ConvTranspose": _conv_transpose,
    "MaxUnpool": _max_unpool,
    "ReduceMax": lambda node: _extreme_of_bool(node, relax.op.max),
    "ReduceMin": lambda node: _extreme_of_bool(node, relax.op.min),
    "Slice": _slice,
    "TopK": _top_k,
    "Unsqueeze": _unsqueeze,
}
