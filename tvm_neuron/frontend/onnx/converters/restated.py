"""Forms that TVM's converters or kernels take once they are stated otherwise."""

import math
from typing import Any

import numpy as np
import tvm
from tvm import relax
from tvm.relax.frontend.onnx.onnx_frontend import _get_convert_map, onnx_input

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.onnx.converters.converter import Converter, Node
from tvm_neuron.frontend.onnx.converters.padding import padding

_LARGE = {"float16": 6e4, "bfloat16": 3e38, "float32": 3e38, "float64": 1.7e308}
"""Nearly the largest number of each dtype, also once it is rounded to bfloat16."""


def by_tvm(node: Node, op: str, inputs: list[Any], attrs: dict[str, Any]) -> relax.Expr:
    """What TVM's own converter makes of the operator with other inputs or attributes."""
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
    return by_tvm(node, "Conv", list(node.inputs), attrs | {"pads": pads, "kernel_shape": kernel})


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
    return by_tvm(node, "ConvTranspose", list(node.inputs), attrs)


def _first_of_all(node: Node) -> relax.Expr:
    """The k largest or smallest, k known at run time only: all in their order, cut off after k."""
    x, rank = node.inputs[0], node.inputs[0].ty.ndim
    axis, is_largest = node.attrs.get("axis", -1) % rank, bool(node.attrs.get("largest", 1))
    ranked = node.bb.emit(relax.op.topk(x, -1, axis, "both", is_largest, "int64"))
    sizes = node.emit(relax.op.shape_to_tensor(node.emit(relax.op.shape_of(x))))
    is_cut = relax.const(np.arange(rank) == axis)
    end = node.emit(relax.op.where(is_cut, node.inputs[1], sizes))
    begin, step = (relax.const(np.full(rank, number), "int64") for number in (0, 1))
    kept = [tvm.tirx.Var("kept", "int64") if at == axis else size for at, size in enumerate(x.ty.shape)]
    fields = [node.emit(relax.TupleGetItem(ranked, index)) for index in range(2)]
    cut = [node.bb.emit(relax.op.dynamic_strided_slice(field, begin, end, step)) for field in fields]
    return relax.Tuple([node.bb.match_cast(each, relax.TensorType(kept, each.ty.dtype)) for each in cut])


def _top_k(node: Node) -> relax.Expr | None:
    """The k largest or smallest, k an attribute before operator set 10; where it is 0 there are none, not all."""
    given = node.constant(1) if "k" not in node.attrs else np.array(node.attrs["k"])
    if given is None:
        return _first_of_all(node)
    x, count = node.inputs[0], int(given.reshape(()))
    axis, shape = node.attrs.get("axis", -1) % x.ty.ndim, list(x.ty.shape)
    if isinstance(shape[axis], tvm.tirx.IntImm) and not 0 <= count <= int(shape[axis]):
        raise ModelError(f"its k is {count}; axis {axis} has {int(shape[axis])} elements")
    if not count:
        shape[axis] = 0
        return relax.Tuple([node.bb.emit(relax.op.zeros(shape, dtype)) for dtype in (node.dtype(), "int64")])
    return relax.op.topk(x, count, axis, "both", bool(node.attrs.get("largest", 1)), "int64")


def _extreme_of_bool(node: Node, reduce: Any) -> relax.Expr | None:
    """The maximum or minimum of truth values, as of numbers."""
    if node.dtype() != "bool":
        return None
    axes = node.axes()
    if not axes and node.attrs.get("noop_with_empty_axes", 0):
        return node.inputs[0]
    numbers = node.emit(relax.op.astype(node.inputs[0], "int8"))
    found = node.emit(reduce(numbers, axes or None, keepdims=bool(node.attrs.get("keepdims", 1))))
    return relax.op.astype(found, "bool")


def _concat(node: Node) -> relax.Expr | None:
    """Of tensors a tensor, where TVM makes a shape of whole numbers that are all known."""
    if any(isinstance(part.ty, relax.ShapeType) for part in node.inputs):
        return None
    return relax.op.concat(relax.Tuple(node.inputs), node.attrs["axis"])


def _flatten(node: Node) -> relax.Expr | None:
    """Both sizes as numbers: where one is 0, the other can't be found from it."""
    if not node.is_static():
        return None
    shape, axis = node.shape(), node.attrs.get("axis", 1)
    if not -len(shape) <= axis <= len(shape):
        return None
    axis = axis if axis >= 0 else axis + len(shape)
    sizes = (math.prod(shape[:axis]), math.prod(shape[axis:]))
    return relax.op.reshape(node.inputs[0], sizes) if all(sizes) else relax.op.zeros(sizes, node.dtype())


def _log_sum_exp(node: Node) -> relax.Expr | None:
    """Of what each value lies below the largest one, so that no exponential overflows."""
    x, dtype, axes = node.inputs[0], node.dtype(), node.axes() or None
    if dtype not in _LARGE or (axes is None and node.attrs.get("noop_with_empty_axes", 0)):
        return None
    largest = node.emit(relax.op.max(x, axes, keepdims=True))
    largest = node.emit(relax.op.clip(largest, -_LARGE[dtype], _LARGE[dtype]))  # infinities have no difference
    below = node.emit(relax.op.exp(node.emit(relax.op.subtract(x, largest))))
    total = node.emit(relax.op.log(node.emit(relax.op.sum(below, axes, keepdims=True))))
    found = node.emit(relax.op.add(total, largest))
    return found if node.attrs.get("keepdims", 1) else relax.op.squeeze(found, axes)


def _grid_sample(node: Node) -> relax.Expr | None:
    """Between its centres a dimension of one element has no length that TVM's kernel could reflect by: it gets two."""
    is_reflected = node.attrs.get("padding_mode") == b"reflection" and node.attrs.get("align_corners", 0)
    if not is_reflected or not node.is_static():
        return None
    x, single = node.inputs[0], [axis for axis, extent in enumerate(node.shape()) if axis > 1 and extent == 1]
    for axis in single:
        x = node.emit(relax.op.repeat(x, 2, axis))
    return by_tvm(node, "GridSample", [x, node.inputs[1]], node.attrs) if single else None


def _mean_of_whole(node: Node) -> relax.Expr | None:
    """The mean of integers in their own dtype, in which TVM's kernel doesn't leave it."""
    if "int" not in node.dtype() or not node.is_static():
        return None
    axes = node.axes()
    if not axes:
        if node.attrs.get("noop_with_empty_axes"):
            return None
        axes = list(range(len(node.shape())))
    count = math.prod(node.shape()[axis] for axis in axes)
    total = node.emit(relax.op.sum(node.inputs[0], axes, keepdims=bool(node.attrs.get("keepdims", 1))))
    return relax.op.divide(total, relax.const(count, node.dtype())) if count else None


def _slice(node: Node) -> relax.Expr | None:
    """What operator sets before 10 give as attributes, as operands; a slice without elements has no negative size."""
    if "starts" not in node.attrs:
        return _empty_slice(node)
    starts, ends = node.attrs["starts"], node.attrs["ends"]
    axes = node.attrs.get("axes", tuple(range(len(starts))))
    return by_tvm(node, "Slice", [node.inputs[0], *(relax.const(list(v), "int64") for v in (starts, ends, axes))], {})


def _empty_slice(node: Node) -> relax.Expr | None:
    starts, ends = node.constant(1), node.constant(2)
    if starts is None or ends is None or not node.is_static():
        return None
    axes, steps = (node.constant(3), node.constant(4))
    axes = np.arange(starts.size) if axes is None else axes
    steps = np.ones(starts.size, np.int64) if steps is None else steps
    if any(node.given(at) is not None and node.constant(at) is None for at in (3, 4)) or not all(steps.tolist()):
        return None
    shape = list(node.shape())
    for axis, start, end, step in zip(axes.tolist(), starts.tolist(), ends.tolist(), steps.tolist(), strict=True):
        shape[axis] = len(range(shape[axis])[start:end:step])
    return relax.op.zeros(shape, node.dtype()) if 0 in shape else None


def _empty_expansion(node: Node) -> relax.Expr | None:
    """To no elements, which TVM's converter refuses."""
    target = node.constant(1)
    if target is None or not node.is_static() or 0 not in target:
        return None
    try:
        return relax.op.zeros(np.broadcast_shapes(node.shape(), tuple(target.tolist())), node.dtype())
    except ValueError:
        raise ModelError(f"shape {list(node.shape())} can't be expanded to {target.tolist()}") from None


def _unsqueeze(node: Node) -> relax.Expr | None:
    """A single axis that comes as a number, as a list of one."""
    axes = node.constant(1)
    if axes is None or axes.ndim:
        return None
    return by_tvm(node, "Unsqueeze", [node.inputs[0], relax.const(axes.reshape(1))], {})


def _max_unpool(node: Node) -> relax.Expr | None:
    """To a given shape: zeros after what the pooling would have covered, which its positions count in."""
    if node.given(2) is None:
        return None
    shape = node.constant(2)
    covered = node.emit(by_tvm(node, "MaxUnpool", [*node.inputs[:2], None], node.attrs))
    sizes = [int(size) for size in covered.ty.shape]
    if shape is None or any(wanted < size for wanted, size in zip(shape.tolist(), sizes, strict=True)):
        found = "known at run time only" if shape is None else f"{shape.tolist()}"
        raise ModelError(f"its output shape is {found}; only constant shapes from {sizes} on can be made")
    pairs = [pad for wanted, size in zip(shape.tolist(), sizes, strict=True) for pad in (0, wanted - size)]
    return relax.op.nn.pad(covered, pairs)


CONVERTERS: dict[str, Converter] = {
    "Concat": _concat,
    "Conv": _convolution,
    "ConvTranspose": _conv_transpose,
    "Expand": _empty_expansion,
    "Flatten": _flatten,
    "GridSample": _grid_sample,
    "MaxUnpool": _max_unpool,
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceMax": lambda node: _extreme_of_bool(node, relax.op.max),
    "ReduceMean": _mean_of_whole,
    "ReduceMin": lambda node: _extreme_of_bool(node, relax.op.min),
    "Slice": _slice,
    "TopK": _top_k,
    "Unsqueeze": _unsqueeze,
}
