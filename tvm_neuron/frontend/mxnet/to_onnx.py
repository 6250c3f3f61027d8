"""A symbol of MXNet and its weights as an ONNX model."""

from collections.abc import Mapping, Sequence
from inspect import signature
from typing import Any

import numpy as np
import onnx
from onnx import helper

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.graph import Shape, model_of, tensor_type
from tvm_neuron.frontend.mxnet.attributes import Attributes
from tvm_neuron.frontend.mxnet.control_flow import CONTROL_FLOW
from tvm_neuron.frontend.mxnet.network import Network
from tvm_neuron.frontend.mxnet.operators import CONVERTERS, LOSSES, OUTPUTS
from tvm_neuron.frontend.mxnet.params import Weights
from tvm_neuron.frontend.mxnet.symbol import VARIABLE, Node, Output, Symbol
from tvm_neuron.frontend.refused import RefusedError


def to_onnx(
    symbol: Symbol, weights: Weights, shapes: Mapping[str, Shape], dtypes: Mapping[str, str], dtype: str = "float32"
) -> onnx.ModelProto:
    """The model: variables without weights are its inputs, operators have MXNet's names; labels are left out.

    Raises:
        ModelError: an input has no shape or is none, an operator has no converter, or a form of one is refused.
    """
    network = Network()
    needed = _needed(symbol)
    variables = _variables(symbol, weights)
    unknown = [name for name in shapes if name not in variables]
    if unknown:
        raise ModelError(f"the symbol has no input '{unknown[0]}'; its inputs are {', '.join(variables) or 'none'}")
    inputs: list[onnx.ValueInfoProto] = []
    made: dict[int, dict[str, str]] = {}  # of each node the tensors, by what MXNet adds to its name
    for number, node in needed.items():
        if node.op == VARIABLE and node.name in weights:
            made[number] = {"": network.weight(node.name, weights[node.name])}
        elif node.op == VARIABLE:
            kind = np.dtype(dtypes.get(node.name, dtype))
            shape = _shape_of_input(node, shapes, variables)
            made[number] = {"": network.declare(node.name, shape, kind)}
            inputs.append(tensor_type(node.name, shape, kind))
        else:
            made[number] = _convert(network, node, [_output(symbol, made, each)[1] for each in _inputs(node)], "")
    outputs: list[onnx.ValueInfoProto] = []
    for head in symbol.heads:
        name, tensor = _output(symbol, made, head)
        while name in {value.name for value in [*inputs, *outputs]}:
            name += "_"
        network.nodes.append(helper.make_node("Identity", [tensor], [name], name=f"output{len(outputs)}"))
        outputs.append(tensor_type(name, network.shape(tensor), network.dtype(tensor)))
    return model_of(network, inputs, outputs)


def described(symbol: Symbol, weights: Weights, examples: Any) -> tuple[dict[str, Shape], dict[str, str]]:
    """Shapes and dtypes of inputs like these: one array, a tuple in the symbol's order, or by name; None says nothing.

    Raises:
        ModelError: there are more than the symbol has inputs, or one is no array.
    """
    names = _variables(symbol, weights)
    if examples is None:
        return {}, {}
    if not isinstance(examples, Mapping):
        several = examples if isinstance(examples, tuple | list) else (examples,)
        if len(several) > len(names):
            raise ModelError(f"{len(several)} example inputs of a symbol with {len(names)}: {', '.join(names)}")
        examples = dict(zip(names, several, strict=False))
    arrays = {name: np.asarray(value) for name, value in examples.items()}
    if any(array.dtype == object for array in arrays.values()):
        raise ModelError("example inputs of a model of MXNet are arrays: one, a tuple, or a dictionary of them by name")
    return {name: each.shape for name, each in arrays.items()}, {name: str(each.dtype) for name, each in arrays.items()}


def _variables(symbol: Symbol, weights: Weights) -> list[str]:
    """Those without weights, which are inputs."""
    needed = _needed(symbol).values()
    return [node.name for node in needed if node.op == VARIABLE and node.name not in weights]


def _needed(symbol: Symbol) -> dict[int, Node]:
    """The nodes that the outputs follow from, by number, in order."""
    reached: set[int] = set()
    waiting = [number for number, _ in symbol.heads]
    while waiting:
        number = waiting.pop()
        if number not in reached:
            reached.add(number)
            waiting += [read for read, _ in _inputs(symbol.nodes[number])]
    return {number: symbol.nodes[number] for number in sorted(reached)}


def _inputs(node: Node) -> Sequence[Output]:
    return node.inputs[:1] if node.op in LOSSES else node.inputs


def _output(symbol: Symbol, made: Mapping[int, Mapping[str, str]], read: Output) -> tuple[str, str]:
    """The name that MXNet has for an output, and the tensor."""
    number, place = read
    node, found = symbol.nodes[number], [*made[number].items()]
    if not 0 <= place < len(found):
        raise ModelError(f"output {place} of operator '{node.name}' ({node.op}) is for training alone")
    suffix, tensor = found[place]
    return node.name + suffix, tensor


def _shape_of_input(node: Node, shapes: Mapping[str, Shape], variables: Sequence[str]) -> Shape:
    shape = tuple(shapes.get(node.name, Attributes(node.attributes).sizes("__shape__", ())))
    if shape and all(size > 0 for size in shape):
        return shape
    others = ", ".join(name for name in variables if name != node.name)
    raise ModelError(
        f"'{node.name}' has no weights, so it is an input, and inputs need a shape: give it one, or a file of weights "
        f"that has it{f' (also without weights: {others})' if others else ''}"
    )


def _convert(network: Network, node: Node, inputs: Sequence[str], scope: str) -> dict[str, str]:
    """The operator's results, by what MXNet adds to its name; `scope` is the loop that it is part of."""
    network.scope = scope + node.name
    where = f"operator '{network.scope}' ({node.op})"
    attributes = Attributes(node.attributes)
    try:
        found = _results(network, node, attributes, inputs, where)
    except RefusedError as error:
        raise ModelError(f"{where} can't be imported: {error}") from error
    if attributes.passed_over():
        raise ModelError(f"{where} can't be imported: {', '.join(attributes.passed_over())} is not known of it")
    if isinstance(found, str):
        return {"_output": found}
    names = OUTPUTS.get(node.op) or [f"_output{number}" for number in range(len(found))]
    return dict(zip(names, found, strict=False))


def _results(
    network: Network, node: Node, attributes: Attributes, inputs: Sequence[str], where: str
) -> str | Sequence[str]:
    if node.op in CONTROL_FLOW:
        scope = network.scope

        def write(body: Symbol, tensors: Sequence[str], suffix: str) -> list[str]:
            return _written_out(network, body, tensors, f"{scope}{suffix}/")

        found = CONTROL_FLOW[node.op](network, attributes, node.subgraphs, inputs, write)
        return found if len(found) > 1 else found[0]
    converter = CONVERTERS.get(node.op)
    if converter is None:
        raise ModelError(f"{where} has no converter to ONNX")
    try:
        signature(converter).bind(network, attributes, *inputs)
    except TypeError as error:
        raise ModelError(f"{where} can't be imported: it has {len(inputs)} inputs") from error
    return converter(network, attributes, *inputs)


def _written_out(network: Network, body: Symbol, tensors: Sequence[str], scope: str) -> list[str]:
    """The heads of a subgraph whose variables, in order, are these tensors."""
    variables = [number for number, node in enumerate(body.nodes) if node.op == VARIABLE]
    if len(variables) != len(tensors):
        raise RefusedError(f"its subgraph has {len(variables)} variables for {len(tensors)} inputs")
    made = {number: {"": tensor} for number, tensor in zip(variables, tensors, strict=True)}
    for number, node in _needed(body).items():
        if node.op != VARIABLE:
            made[number] = _convert(network, node, [_output(body, made, each)[1] for each in _inputs(node)], scope)
    return [_output(body, made, head)[1] for head in body.heads]
