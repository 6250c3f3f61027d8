"""Program: a library as a module of TensorFlow, which is saved with it."""

from typing import Any

import tensorflow as tf
import tvm

from tvm_neuron.profile.report import Report
from tvm_neuron.relay.factory import ExecutorFactory
from tvm_neuron.runtime import report
from tvm_neuron.runtime.packed import pack
from tvm_neuron.tensorflow.operator import call


class Program(tf.Module):
    """Called with the tensors of the model, it gives what the model gives; `library` is a variable, so it is saved."""

    def __init__(self, library: ExecutorFactory, has_open_batch: bool, structure: Any) -> None:
        super().__init__()
        content, self._digest = pack(library)
        self.library = tf.Variable(content, trainable=False)
        executor = library["default"](tvm.cpu())
        self._takes = lambda: [_spec(each, has_open_batch) for each in executor.inputs]
        self._gives = lambda: [_spec(each, has_open_batch) for each in executor.outputs]
        self._structure = lambda: structure
        self._report = lambda: report(library)
        self.__call__.get_concrete_function(*self._takes())  # so that it is saved

    @property
    def report(self) -> Report:
        """Where the operators run, and what it costs."""
        return self._report()

    @tf.function
    def __call__(self, *tensors: tf.Tensor) -> Any:
        """The results in the structure that the model gives them."""
        return tf.nest.pack_sequence_as(self._structure(), call(self.library, self._digest, tensors, self._gives()))

    def signature(self) -> Any:
        """A function of named tensors that gives named ones, as SavedModels have it."""

        @tf.function
        def serve(**named: tf.Tensor) -> dict[str, tf.Tensor]:
            found = call(self.library, self._digest, [named[spec.name] for spec in self._takes()], self._gives())
            return {spec.name: tensor for spec, tensor in zip(self._gives(), found, strict=True)}

        return serve.get_concrete_function(**{spec.name: spec for spec in self._takes()})


def _spec(tensor: Any, has_open_batch: bool) -> tf.TensorSpec:
    shape = [None, *tensor.shape[1:]] if has_open_batch else tensor.shape
    return tf.TensorSpec(shape, tf.as_dtype(str(tensor.dtype)), tensor.name)
