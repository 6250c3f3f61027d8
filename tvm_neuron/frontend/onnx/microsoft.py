"""Operators of com.microsoft as nodes of the standard ones: attention with masks and a past, of floats or bytes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import helper

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.onnx.recurrent.parts import cut, only, stacked, transposed
from tvm_neuron.frontend.onnx.sequences import MakeNode
from tvm_neuron.frontend.onnx.values import Known, Value, dtype_of, shape_of

DOMAIN = "com.microsoft"
_REFUSED = ("do_rotary", "past_present_share_buffer")


def _attention(node: onnx.NodeProto, operands: list[Value], make: MakeNode) -> list[Value]:
    """softmax(q @ k' * scale + masks) @ v of each head, where q, k and v are parts of input @ weights + bias."""
    operands = [*operands, *[None] * (7 - len(operands))]
    x, weights, bias, mask, past, more_bias, length = operands
    if length is not None:
        raise ModelError("its past_sequence_length is given; give a past of the length that it has")
    projected = make("MatMul", [x, weights])
    projected = projected if bias is None else make("Add", [projected, bias])
    return _attended(node, projected, mask, past, more_bias, make)


def _quantized_attention(node: onnx.NodeProto, operands: list[Value], make: MakeNode) -> list[Value]:
    """The same, where input and weights are bytes with scales and zero points."""
    operands = [*operands, *[None] * (9 - len(operands))]
    x, weights, bias, x_scale, w_scale, mask, x_zero, w_zero, past = operands
    whole = make("MatMulInteger", [x, weights, x_zero, w_zero])
    scale = make("Mul", [x_scale, w_scale])
    projected = make("Add", [make("Mul", [make("CastLike", [whole, scale]), scale]), bias])
    return _attended(node, projected, mask, past, None, make)


def _attended(
    node: onnx.NodeProto, projected: Value, mask: Value, past: Value, more_bias: Value, make: MakeNode
) -> list[Value]:
    attributes: dict[str, Any] = {each.name: helper.get_attribute_value(each) for each in node.attribute}
    if refused := [name for name in _REFUSED if attributes.get(name)]:
        raise ModelError(f"its attribute {refused[0]} is set, which is not supported")
    shape, heads = shape_of(projected), int(attributes["num_heads"])
    if shape is None:
        raise ModelError("its length is not known at compile time")
    batch, steps, width = shape
    sizes = [int(size) for size in attributes.get("qkv_hidden_sizes", [width // 3] * 3)]
    ends = np.cumsum(sizes).tolist()
    split = [cut(make, projected, 2, end - size, end) for size, end in zip(sizes, ends, strict=True)]
    shapes = [(batch, steps, heads, size // heads) for size in sizes]
    q, k, v = (_by_head(make, part, wanted) for part, wanted in zip(split, shapes, strict=True))
    if past is not None:
        k, v = (make("Concat", [only(make, past, at), part], axis=2) for at, part in enumerate((k, v)))
    kept = shape_of(k)
    assert kept is not None
    dtype, total = np.dtype(dtype_of(projected)), kept[2]
    scale = Known(np.array(attributes.get("scale") or (sizes[0] // heads) ** -0.5, dtype))
    scores = make("Mul", [make("MatMul", [q, transposed(make, k, [0, 1, 3, 2])]), scale])
    filtered = np.array(attributes.get("mask_filter_value", -10000.0), dtype)
    if mask is not None:
        scores = make("Add", [scores, _bias_of(mask, (batch, steps, total), filtered, make)])
    scores = scores if more_bias is None else make("Add", [scores, more_bias])
    if attributes.get("unidirectional"):
        later = np.arange(total) > np.arange(steps)[:, None] + total - steps
        scores = make("Where", [Known(later), Known(np.array(np.finfo(dtype).min, dtype)), scores])
    found = make("MatMul", [make("Softmax", [scores], axis=-1), v])
    target = Known(np.array([batch, steps, sizes[2]]))
    result = make("Reshape", [transposed(make, found, [0, 2, 1, 3]), target])
    return [result, stacked(make, [k, v], 0)] if len(node.output) > 1 else [result]


def _by_head(make: MakeNode, value: Value, shape: tuple[int, ...]) -> Value:
    return transposed(make, make("Reshape", [value, Known(np.array(shape))]), [0, 2, 1, 3])


def _bias_of(mask: Value, sizes: tuple[int, int, int], filtered: np.ndarray, make: MakeNode) -> Value:
    """What is added to the scores: `filtered` where the mask is 0, or, of one axis, from each row's length on."""
    batch, steps, total = sizes
    shape = shape_of(mask)
    if shape == (batch,):
        ends = make("Reshape", [mask, Known(np.array([batch, 1]))])
        allowed = make("Less", [Known(np.arange(total, dtype=dtype_of(mask))), ends])
        shape = (batch, total)
    else:
        allowed = make("Greater", [mask, Known(np.array(0, dtype_of(mask)))])
    if shape not in ((batch, total), (batch, steps, total)):
        raise ModelError(
            f"its mask has the shape {shape}; masks have [{batch}], [{batch}, {total}] or [{batch}, {steps}, {total}]"
        )
    target = Known(np.array([batch, 1, shape[1] if len(shape) == 3 else 1, total]))
    zero = Known(np.zeros((), filtered.dtype))
    return make("Where", [make("Reshape", [allowed, target]), zero, Known(filtered)])


MICROSOFT: dict[str, Callable[[onnx.NodeProto, list[Value], MakeNode], list[Value]]] = {
    "Attention": _attention,
    "QAttention": _quantized_attention,
}
"""By operator: its outputs from the node, its operands and what makes further nodes."""
