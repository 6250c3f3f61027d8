"""How many multiplications operators of a model ask for, by the shapes that onnx infers."""

import math
from collections.abc import Collection

import onnx

_PRODUCTS = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})


def multiplications(model: onnx.ModelProto, names: Collection[str]) -> int:
    """Of the convolutions and matrix products with these names, or whose first output has one of them."""
    nodes = [node for node in model.graph.node if node.op_type in _PRODUCTS]
    left = [node for node in nodes if node.name in names or node.output[0] in names]
    if not left:
        return 0
    shapes = _shapes(model)
    return sum(_of(node, shapes) for node in left)


def _of(node: onnx.NodeProto, shapes: dict[str, tuple[int, ...]]) -> int:
    result = math.prod(shapes.get(node.output[0], (0,)))
    match node.op_type:
        case "Conv":
            return result * math.prod(shapes.get(node.input[1], (0,))[1:])
        case "ConvTranspose":
            return math.prod(shapes.get(node.input[0], (0,))) * math.prod(shapes.get(node.input[1], (0,))[1:])
        case "MatMul":
            return result * shapes.get(node.input[0], (0,))[-1]
        case "Gemm":
            first = shapes.get(node.input[0], (0, 0))
            is_turned = any(each.name == "transA" and each.i for each in node.attribute)
            return result * first[0 if is_turned else 1]
    return 0


def _shapes(model: onnx.ModelProto) -> dict[str, tuple[int, ...]]:
    graph = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    found = {proto.name: tuple(proto.dims) for proto in graph.initializer}
    for value in (*graph.input, *graph.value_info, *graph.output):
        found[value.name] = tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim)
    return found
