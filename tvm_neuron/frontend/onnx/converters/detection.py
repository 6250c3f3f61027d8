"""NonMaxSuppression: the limits as numbers, which may be known at run time only; boxes by their corners."""

import math

import numpy as np
from tvm import relax, tirx

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.onnx.converters.converter import Converter, Node


def _non_max_suppression(node: Node) -> relax.Expr:
    """Rows (batch, class, box); Relax's operator takes NaN as the limit below which no score falls."""
    if not all(isinstance(operand.ty.shape, relax.ShapeExpr) for operand in node.inputs[:2]):
        raise ModelError(
            "the shape of its boxes or scores is open, as behind an If: there is no kernel for that in one library; "
            "relay.vm.compile and relay.create_executor run such models in stages, or cut the model before it "
            "(onnx.utils.extract_model, its boxes and scores as outputs) and choose among them on the host"
        )
    boxes = _corners(node) if node.attrs.get("center_point_box", 0) else node.inputs[0]
    limits = [_number(node, 2, 0, "int64"), _number(node, 3, 0.0, "float32"), _number(node, 4, math.nan, "float32")]
    call = relax.op.vision.all_class_non_max_suppression(boxes, node.inputs[1], *limits, output_format="onnx")
    found = node.bb.emit(call)
    room, count = (node.bb.emit(relax.TupleGetItem(found, part)) for part in range(2))
    # Relax takes the rows for as many as there can be; that there are fewer, all that follows has to know
    begin, strides = (relax.const(np.full(2, number), "int64") for number in (0, 1))
    end = node.emit(relax.op.concat([count, relax.const(np.array([3]), "int64")], 0))
    rows = node.emit(relax.op.dynamic_strided_slice(room, begin, end, strides))
    return node.bb.match_cast(rows, relax.TensorType([tirx.Var("selected", "int64"), 3], "int64"))


def _number(node: Node, position: int, default: float, dtype: str) -> relax.Expr:
    given, known = node.given(position), node.constant(position)
    if known is not None:
        return relax.const(known.reshape(()), dtype)
    return relax.const(default, dtype) if given is None else node.emit(relax.op.reshape(given, ()))


def _corners(node: Node) -> relax.Expr:
    """(x, y, width, height) around the centre as (y, x, y, x) of two corners."""
    x, y, width, height = (
        node.emit(relax.op.strided_slice(node.inputs[0], [2], [part], [part + 1])) for part in range(4)
    )
    two = relax.const(2, node.dtype())
    half = [node.emit(relax.op.divide(size, two)) for size in (height, width)]
    low, high = (
        [node.emit(move(centre, by)) for centre, by in zip((y, x), half, strict=True)]
        for move in (relax.op.subtract, relax.op.add)
    )
    return node.emit(relax.op.concat([*low, *high], 2))


CONVERTERS: dict[str, Converter] = {"NonMaxSuppression": _non_max_suppression}
