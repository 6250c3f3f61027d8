"""NeuronCores from inside TensorFlow: `trace` a model, or compile a SavedModel into another (`saved_model.compile`).

What comes out runs in a process that has imported this module.
"""

from tvm_neuron.frontend.tensorflow import need_tensorflow

need_tensorflow()

from tvm_neuron.tensorflow import operator, saved_model  # noqa: E402 - the sentence about a missing package comes first
from tvm_neuron.tensorflow.trace import trace  # noqa: E402

__all__ = ["saved_model", "trace"]

operator.register()
