"""to_onnx: a captured graph as tf2onnx writes it, with the names of the model's inputs and outputs."""

import logging
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import onnx
from onnx import helper

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.cause import cause
from tvm_neuron.frontend.examples import shapes_by_name
from tvm_neuron.frontend.tensorflow.captured import Captured, captured
from tvm_neuron.frontend.tensorflow.cases import without_cases

_OPSET = 18
_STANDARD = ("", "ai.onnx", "ai.onnx.ml", "com.microsoft")


def to_onnx(
    found: Captured, shapes: Mapping[str, Sequence[int]] | None = None, *, is_nchw: bool = False
) -> onnx.ModelProto:
    """The model; `shapes` fixes sizes that the graph leaves open. `is_nchw`: images have their channels first.

    Raises:
        ModelError: there is no such input, or tf2onnx can't write an operator.
    """
    unknown = [name for name in shapes or () if name not in found.inputs]
    if unknown:
        raise ModelError(f"the model has no input '{unknown[0]}'; its inputs are {', '.join(found.inputs)}")
    images: dict[str, Any] = {}
    given = dict(shapes or {})
    if is_nchw:
        images = {"inputs_as_nchw": [*found.inputs.values()], "outputs_as_nchw": [*found.outputs.values()]}
        given = {name: _channels_last(shape) for name, shape in given.items()}
    tf2onnx = import_module("tf2onnx")
    logging.getLogger("tf2onnx").setLevel(logging.CRITICAL)  # what it can't do it also raises
    try:
        model, _ = tf2onnx.convert.from_graph_def(
            without_cases(found.graph), input_names=[*found.inputs.values()],
            output_names=[*found.outputs.values()], opset=_OPSET,
            shape_override={found.inputs[name]: [*shape] for name, shape in given.items()} or None,
            tensors_to_rename={tensor: name for name, tensor in [*found.inputs.items(), *found.outputs.items()]},
            **images,
        )  # fmt: skip
    except Exception as error:
        raise ModelError(f"tf2onnx can't write the model as ONNX: {cause(error)}") from error
    for value in model.graph.input:
        if value.name in _of_any_rank(found) - given.keys():
            value.type.tensor_type.ClearField("shape")  # tf2onnx writes them as single numbers
    written = [each for node in model.graph.node for each in _standard(node)]
    del model.graph.node[:]
    model.graph.node.extend(written)
    for node in written:
        if node.domain not in _STANDARD:
            raise ModelError(f"operator '{node.name}' ({node.op_type}) of TensorFlow has no converter to ONNX")
    return model


def _of_any_rank(found: Captured) -> set[str]:
    """The inputs of which the graph does not even say how many dimensions they have."""
    nodes = {node.name for node in found.graph.node if "shape" in node.attr and node.attr["shape"].shape.unknown_rank}
    return {name for name, tensor in found.inputs.items() if tensor.partition(":")[0] in nodes}


def _standard(node: onnx.NodeProto) -> list[onnx.NodeProto]:
    """The node, or, of an Erfc, which tf2onnx writes though ONNX has none, 1 - Erf."""
    if node.op_type != "Erfc":
        return [node]
    one, erf = f"{node.output[0]}/one", f"{node.output[0]}/erf"
    return [
        helper.make_node("Erf", [node.input[0]], [erf], f"{node.name}/erf"),
        helper.make_node("Constant", [], [one], f"{node.name}/one", value_float=1.0),
        helper.make_node("Sub", [one, erf], [node.output[0]], node.name),
    ]


def model_as_onnx(model: Any, example_inputs: Any) -> onnx.ModelProto:
    """Any model that `captured` takes, its inputs of the shapes of the examples.

    Raises:
        OptionError, ModelError: see `captured` and `to_onnx`.
    """
    found = captured(model, example_inputs)
    if example_inputs is None:
        return to_onnx(found)
    return to_onnx(found, shapes_by_name(example_inputs, [*found.inputs]))


def _channels_last(shape: Sequence[int]) -> Sequence[int]:
    return [shape[0], *shape[2:], shape[1]] if len(shape) == 4 else shape
