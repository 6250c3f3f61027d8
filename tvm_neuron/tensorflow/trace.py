"""`trace`: a model of TensorFlow in, a module of TensorFlow out that runs on the hardware model."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from tvm_neuron.codegen.options import BuildOptions
from tvm_neuron.frontend.examples import shapes_by_name
from tvm_neuron.frontend.tensorflow import captured
from tvm_neuron.tensorflow.parts import compiled
from tvm_neuron.tensorflow.program import Program


def trace(model: Any, example_inputs: Any, target: Any = "neuron", *, options: BuildOptions | None = None) -> Program:
    """Compile `model` for the shapes of `example_inputs` (an array or tensor, a tuple, a dictionary of named ones).

    What comes out is called with the model's tensors in the order of its inputs, saved by `tf.saved_model.save`, and
    loaded where `tvm_neuron.tensorflow` is imported; its `report` says where the operators run. Operators that no
    NeuronCore runs are compiled for the CPU, and stay in the library; those that can't be imported stay TensorFlow's,
    and what is between them becomes several libraries. With `BuildOptions(dynamic_batch=True)` it takes any number of
    rows, if all can be imported.

    Raises what `tvm_neuron.compile` raises.
    """
    found = captured(model, example_inputs)
    library = compiled(found, shapes_by_name(example_inputs, [*found.inputs]), target, options)
    if isinstance(model, tf.keras.Model) or not isinstance(example_inputs, Mapping):
        one = example_inputs if isinstance(example_inputs, tuple) else (example_inputs,)
        result = model(*one)
    else:
        result = model(**{name: tf.convert_to_tensor(value) for name, value in example_inputs.items()})
    return Program(library, options is not None and options.dynamic_batch, tf.nest.map_structure(lambda _: 0, result))
