"""captured: any model of TensorFlow as a graph whose variables are constants."""

import itertools
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any
from unittest import mock

import numpy as np

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.cause import cause
from tvm_neuron.frontend.tensorflow.cases import without_cases
from tvm_neuron.frontend.tensorflow.need import need_tensorflow

_SERVING = "serving_default"
_OF_XLA = "_XlaMustCompile"  # XLA compiles such functions whole: those of Keras for convolutions of several groups


@dataclass(frozen=True)
class Captured:
    """A GraphDef; the tensors that are its inputs and its outputs (`x:0`), each by its name in the model."""

    graph: Any
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]


def is_of_tensorflow(model: Any) -> bool:
    """Whether it is a model, module, function or graph of TensorFlow, which is not imported to find out."""
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is None:
        return False
    kinds = tensorflow.types.experimental
    of_graphs = (tensorflow.compat.v1.GraphDef, kinds.GenericFunction, kinds.ConcreteFunction)
    of_modules = (tensorflow.__internal__.tracking.AutoTrackable, tensorflow.keras.Model)  # and loaded SavedModels
    return isinstance(model, (*of_graphs, *of_modules))


def captured(model: Any, example_inputs: Any = None) -> Captured:
    """A Keras model, a function or concrete function, a loaded SavedModel, a module with `__call__`, or a GraphDef.

    `example_inputs` are the arguments of one call: an array, a tuple, or a dictionary of named ones. Models of Keras,
    concrete functions, SavedModels and graphs have inputs of their own.

    Raises:
        OptionError: TensorFlow or tf2onnx is not installed.
        ModelError: it can't be traced, is a function without example inputs, or has several signatures.
    """
    tensorflow = need_tensorflow()
    if isinstance(model, tensorflow.compat.v1.GraphDef):
        return _of_graph(model)
    names: Sequence[str] = ()
    function = model  # beside which `model` is kept: it owns the variables
    try:
        if isinstance(model, tensorflow.keras.Model):
            names = [each._keras_history.operation.name for each in getattr(model, "outputs", None) or ()]  # of layers
            function = _of_keras(tensorflow, model, example_inputs)
        elif getattr(model, "signatures", None):
            function = _signature(model.signatures)
        elif not isinstance(model, tensorflow.types.experimental.ConcreteFunction):
            function = _of_function(tensorflow, model, example_inputs)
        frozen = _frozen(function)
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(f"TensorFlow can't trace the model: {cause(error)}") from error
    if isinstance(function.structured_outputs, Mapping):
        names = sorted(function.structured_outputs)  # TensorFlow's own order
    if len(names) != len(frozen.outputs):
        names = [f"output_{number}" for number in range(len(frozen.outputs))]
    inputs = {tensor.name.partition(":")[0]: tensor.name for tensor in frozen.inputs}
    outputs = dict(zip(_distinct(names), (tensor.name for tensor in frozen.outputs), strict=True))
    return Captured(_inlineable(frozen.graph.as_graph_def()), inputs, outputs)


def _frozen(function: Any) -> Any:
    """The function with constants for variables, and for each Case branches of two, which TensorFlow keeps whole."""
    constants = import_module("tensorflow.python.framework.convert_to_constants")
    keep_whole = constants.disable_lower_using_switch_merge
    with mock.patch.object(constants, keep_whole.__name__, lambda graph: without_cases(keep_whole(graph))):
        return constants.convert_variables_to_constants_v2(function, lower_control_flow=False)


def _distinct(names: Sequence[str]) -> list[str]:
    """`lstm`, `lstm_1` and `lstm_2`, where a layer gives three tensors."""
    found: list[str] = []
    for name in names:
        counted = (f"{name}_{number}" for number in itertools.count(1))
        found.append(name if name not in found else next(each for each in counted if each not in (*found, *names)))
    return found


def _inlineable(graph: Any) -> Any:
    """The graph without the marks of functions that are not to be put into it: ONNX has no calls of them."""
    for node in [*graph.node, *(node for function in graph.library.function for node in function.node_def)]:
        node.attr.pop(_OF_XLA, None)
    for function in graph.library.function:
        function.attr.pop(_OF_XLA, None)
        function.attr.pop("_noinline", None)
    return graph


def _of_keras(tensorflow: Any, model: Any, example_inputs: Any) -> Any:
    if example_inputs is None and not getattr(model, "inputs", None):
        raise ModelError("this model of Keras does not know its inputs: give tvm_neuron.compile example inputs")
    if example_inputs is None:
        specs = [_spec(tensorflow, each.shape, each.dtype, each.name) for each in model.inputs]
        keys: Sequence[str] = ()
    else:
        named = example_inputs if isinstance(example_inputs, Mapping) else {}
        keys = [*named]
        arrays = [named[key] for key in keys] if named else _positional(example_inputs)
        own = [each.name for each in getattr(model, "inputs", None) or ()]
        called = keys or (own if len(own) == len(arrays) else [f"input_{number}" for number in range(len(arrays))])
        specs = [_spec(tensorflow, np.shape(each), np.asarray(each).dtype, name)
                 for each, name in zip(arrays, called, strict=True)]  # fmt: skip

    def call(*given: Any) -> Any:
        one = given[0] if len(given) == 1 else [*given]
        return model(dict(zip(keys, given, strict=True)) if keys else one, training=False)

    return tensorflow.function(call).get_concrete_function(*specs)


def _of_function(tensorflow: Any, model: Any, example_inputs: Any) -> Any:
    if example_inputs is None:
        if getattr(model, "input_signature", None) is not None:
            return model.get_concrete_function()
        raise ModelError(
            "a function of TensorFlow has no inputs of its own: give tvm_neuron.compile example inputs, or the "
            "function an input_signature"
        )
    if isinstance(example_inputs, Mapping):
        arrays = {name: np.asarray(value) for name, value in example_inputs.items()}
        specs = {name: _spec(tensorflow, each.shape, each.dtype, name) for name, each in arrays.items()}
        return tensorflow.function(lambda **named: model(**named)).get_concrete_function(**specs)
    arrays_in_order = [np.asarray(each) for each in _positional(example_inputs)]
    whole = [_spec(tensorflow, each.shape, each.dtype, f"input_{n}") for n, each in enumerate(arrays_in_order)]
    return tensorflow.function(lambda *given: model(*given)).get_concrete_function(*whole)


def _positional(example_inputs: Any) -> Sequence[Any]:
    return example_inputs if isinstance(example_inputs, tuple | list) else (example_inputs,)


def _spec(tensorflow: Any, shape: Any, dtype: Any, name: str) -> Any:
    return tensorflow.TensorSpec(tuple(shape), tensorflow.as_dtype(dtype), name)


def _signature(signatures: Mapping[str, Any]) -> Any:
    if _SERVING in signatures or len(signatures) == 1:
        return signatures.get(_SERVING) or next(iter(signatures.values()))
    raise ModelError(
        f"the SavedModel has several signatures ({', '.join(sorted(signatures))}) and none is '{_SERVING}': load it "
        "with tf.saved_model.load and give one of its signatures"
    )


def _of_graph(graph: Any) -> Captured:
    """A graph whose variables are constants already: what nothing reads is an output."""
    read = {name.lstrip("^").partition(":")[0] for node in graph.node for name in node.input}
    inputs = [node.name for node in graph.node if node.op == "Placeholder"]
    ends = [node.name for node in graph.node if node.name not in read and node.op not in ("Const", "NoOp")]
    outputs = [name for name in ends if name not in inputs]
    if not outputs:
        raise ModelError("the graph of TensorFlow has no outputs")
    return Captured(graph, {name: f"{name}:0" for name in inputs}, {name: f"{name}:0" for name in outputs})
