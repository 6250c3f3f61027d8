"""A network as the other simulators take it: its convolutions and dense layers, as plain numbers."""

from dataclasses import dataclass

import onnx
from onnx import helper, shape_inference

_INITIALIZERS_ALONE = 4  # the first IR version that lets initializers have shapes without being inputs


@dataclass(frozen=True)
class Layer:
    """One convolution; a dense layer is one of 1 x 1 over one pixel. Sizes of the input are those with padding."""

    name: str
    height: int
    width: int
    kernel_height: int
    kernel_width: int
    channels: int
    filters: int
    stride: int


def with_shapes(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy that states the shape of every value."""
    bare = onnx.ModelProto.FromString(model.SerializeToString())
    bare.ir_version = max(bare.ir_version, _INITIALIZERS_ALONE)
    del bare.graph.value_info[:]  # some models state types without shapes
    return shape_inference.infer_shapes(bare)


def shapes_of(model: onnx.ModelProto) -> dict[str, list[int]]:
    """The shape of every value and weight."""
    graph = with_shapes(model).graph
    known = (*graph.input, *graph.value_info, *graph.output)
    shapes = {value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim] for value in known}
    return shapes | {weight.name: list(weight.dims) for weight in graph.initializer}


def layers(model: onnx.ModelProto) -> list[Layer]:
    """Every Conv (not grouped) and Gemm of `model`, in its order."""
    shapes = shapes_of(model)
    found = []
    for number, node in enumerate(model.graph.node):
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        if node.op_type == "Conv" and attributes.get("group", 1) == 1:
            _, channels, height, width = shapes[node.input[0]]
            filters, _, *kernel = shapes[node.input[1]]
            top, left, bottom, right = attributes.get("pads", [0] * 4)
            size = (height + top + bottom, width + left + right)
            stride = attributes.get("strides", [1, 1])[0]
            found.append(Layer(f"conv{number}", *size, *kernel, channels, filters, stride))
        elif node.op_type == "Gemm":
            filters, channels = shapes[node.input[1]][:: 1 if attributes.get("transB") else -1]
            found.append(Layer(f"gemm{number}", 1, 1, 1, 1, channels, filters, 1))
    return found
