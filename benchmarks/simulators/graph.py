"""A convolutional network as a list of plain operators in NHWC, for a simulator that takes whole graphs."""

from typing import Any

import onnx
from onnx import helper

from benchmarks.simulators.layers import shapes_of

_PASSED_THROUGH = ("BatchNormalization", "Relu", "Reshape", "Flatten", "Softmax", "Identity", "Dropout")
_KINDS = {
    "Conv": "CONV_2D", "Gemm": "FULLY_CONNECTED", "Add": "ADD", "Sum": "ADD",
    "MaxPool": "MAX_POOL_2D", "AveragePool": "AVERAGE_POOL_2D", "GlobalAveragePool": "AVERAGE_POOL_2D",
}  # fmt: skip


def graph(model: onnx.ModelProto) -> list[dict[str, Any]]:
    """What TFLite would have of `model`: normalisations folded, Relu fused, no Softmax.

    Raises:
        ValueError: an operator is none of those that occur in such networks.
    """
    shapes = shapes_of(model)
    made: dict[str, dict[str, Any]] = {}  # the operator that makes an ONNX value
    nodes: list[dict[str, Any]] = []
    for node in model.graph.node:
        if node.op_type in _PASSED_THROUGH:
            if node.input[0] in made:
                made[node.output[0]] = made[node.input[0]]
                made[node.output[0]]["relu"] |= node.op_type == "Relu"
            continue
        if node.op_type not in _KINDS:
            raise ValueError(f"{node.op_type} is not translated")
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        count = 2 if _KINDS[node.op_type] == "ADD" else 1
        sources = [made[name]["output"] if name in made else name for name in node.input[:count]]
        source_shape = shapes[node.input[0]]
        found = {
            "kind": _KINDS[node.op_type],
            "inputs": sources,
            "input_shapes": [made[n]["output_shape"] if n in made else _nhwc(shapes[n]) for n in node.input[:count]],
            "output": node.output[0],
            "output_shape": _nhwc(shapes[node.output[0]]),
            "relu": False,
            "same": any(attributes.get("pads", ())),
            "stride": attributes.get("strides", [1])[0],
            "kernel": attributes.get("kernel_shape", source_shape[2:] or [1])[0],
        }
        if node.op_type == "Conv":
            found["weights"] = _nhwc(shapes[node.input[1]])
        elif node.op_type == "Gemm":
            found["weights"] = shapes[node.input[1]][:: 1 if attributes.get("transB") else -1]
        nodes.append(found)
        made[node.output[0]] = found
    return nodes


def _nhwc(shape: list[int]) -> list[int]:
    return [shape[0], *shape[2:], shape[1]] if len(shape) == 4 else shape
