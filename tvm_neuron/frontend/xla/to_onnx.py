"""A module of StableHLO as an ONNX model: its function `main`, calls written out where they are."""

import re
from typing import Any

import onnx
from onnx import helper

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.drawing import DRAW_DOMAIN
from tvm_neuron.frontend.graph import Graph, model_of, tensor_type
from tvm_neuron.frontend.xla.operators import CONVERTERS
from tvm_neuron.frontend.xla.parts import Parts, split
from tvm_neuron.frontend.xla.region import convert_region
from tvm_neuron.frontend.xla.scope import Cores, Scope, Types, dtype_of, shape_of
from tvm_neuron.neff import TensorInfo

_ATTRIBUTE_NAME = re.compile(r"\W+")


def to_onnx(module: Any) -> onnx.ModelProto | Parts:
    """The model; inputs have the names that the module's text gives, outputs those of the results.

    Of a program for several devices the parts between its exchanges.

    Raises:
        ModelError: an operator has no converter, a form of one none that is right, or sizes are open.
    """
    with module.context:
        operations = [op for op in module.body.operations if "sym_name" in op.attributes]
        functions = {str(op.attributes["sym_name"].value): op for op in operations}
        main = functions.get("main") or next((op for op in operations if op.operation.name == "func.func"), None)
        if main is None:
            raise ModelError("the module of StableHLO has no function")
        graph, cores = Graph(), Cores()
        scope = Scope(graph, functions, cores=cores)
        block = main.regions[0].blocks[0]
        inputs: Types = {}
        for number, argument in enumerate(block.arguments):
            name = graph.reserve(_argument_name(main, number))
            scope.set(argument, name)
            inputs[name] = shape_of(argument), dtype_of(argument)
        results = convert_region(scope, block, CONVERTERS)
        outputs = [
            TensorInfo(graph.reserve(f"result{number}"), shape_of(value), dtype_of(value).name)
            for number, value in enumerate(results)
        ]
        if cores.count:
            if any(node.domain == DRAW_DOMAIN for node in graph.nodes):
                raise ModelError(
                    f"a program for {cores.count} devices draws random numbers (stablehlo.rng), of which nobody knows "
                    "whether they are one device's or all devices': give them as an input"
                )
            return split(graph, cores, inputs, [scope.full(value) for value in results], outputs)
        for number, (value, info) in enumerate(zip(results, outputs, strict=True)):
            graph.nodes.append(helper.make_node("Identity", [scope.full(value)], [info.name], name=f"output{number}"))
        given = [tensor_type(name, *kind) for name, kind in inputs.items()]
        return model_of(graph, given, [tensor_type(i.name, i.shape, i.dtype) for i in outputs])


def _argument_name(main: Any, number: int) -> str:
    """The argument's name in the program that was lowered, where JAX says it; else arg0, arg1, ..."""
    location = str(main.regions[0].blocks[0].arguments[number].location)
    found = re.search(r'loc\("([^"]+)"', location)
    name = _ATTRIBUTE_NAME.sub("_", found.group(1)).strip("_") if found else ""
    return name or f"arg{number}"
