"""Program: what was compiled as a module of TensorFlow: a library, or several amid operators of TensorFlow."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf
import tvm

from tvm_neuron.profile.report import Report
from tvm_neuron.relay.factory import ExecutorFactory
from tvm_neuron.runtime import report
from tvm_neuron.runtime.packed import pack
from tvm_neuron.tensorflow.operator import call
from tvm_neuron.tensorflow.parts import Part, Parts


class Program(tf.Module):
    """Called with the model's tensors, it gives what the model gives; libraries are variables, so they are saved."""

    def __init__(self, compiled: ExecutorFactory | Parts, has_open_batch: bool, structure: Any) -> None:
        super().__init__()
        self.body = _Several(compiled) if isinstance(compiled, Parts) else _Library(compiled, has_open_batch)
        self._structure = lambda: structure  # TensorFlow would wrap it
        self.__call__.get_concrete_function(*self.body.takes())  # so that it is saved

    @property
    def report(self) -> Report:
        """Where the operators run, and what it costs."""
        return self.body.report()

    @tf.function
    def __call__(self, *tensors: tf.Tensor) -> Any:
        """The results in the structure that the model gives them."""
        return tf.nest.pack_sequence_as(self._structure(), self.body(tensors))

    def signature(self) -> Any:
        """A function of named tensors that gives named ones, as SavedModels have it."""

        @tf.function
        def serve(**named: tf.Tensor) -> dict[str, tf.Tensor]:
            found = self.body([named[spec.name] for spec in self.body.takes()])
            return {spec.name: tensor for spec, tensor in zip(self.body.gives(), found, strict=True)}

        return serve.get_concrete_function(**{spec.name: spec for spec in self.body.takes()})


class _Library(tf.Module):
    """A library for all of a model, or for a part."""

    def __init__(self, library: ExecutorFactory, has_open_batch: bool) -> None:
        super().__init__()
        content, self._digest = pack(library)
        self.library = tf.Variable(content, trainable=False)
        executor = library["default"](tvm.cpu())
        self.takes = lambda: [_spec(each, has_open_batch) for each in executor.inputs]
        self.gives = lambda: [_spec(each, has_open_batch) for each in executor.outputs]
        self.report = lambda: report(library)

    def __call__(self, tensors: Sequence[tf.Tensor]) -> list[Any]:
        return call(self.library, self._digest, tensors, self.gives())


class _Several(tf.Module):
    """Libraries, and between them operators of TensorFlow."""

    def __init__(self, parts: Parts) -> None:
        super().__init__()
        self.libraries = [_Library(part.library, False) for part in parts.parts if part.library is not None]
        found = parts.found
        self._parts = lambda: parts
        self.takes = lambda: [_named(parts.specs[tensor], name) for name, tensor in found.inputs.items()]
        self.gives = lambda: [_named(parts.specs[tensor], name) for name, tensor in found.outputs.items()]
        self.report = lambda: parts.report

    def __call__(self, tensors: Sequence[tf.Tensor]) -> list[Any]:
        parts = self._parts()
        known = dict(zip(parts.found.inputs.values(), tensors, strict=True))
        libraries = iter(self.libraries)
        for part in parts.parts:
            known |= _through(part, known) if part.library is None else _by(next(libraries), part, known)
        return [known[tensor] for tensor in parts.found.outputs.values()]


def _by(library: _Library, part: Part, known: dict[str, Any]) -> dict[str, Any]:
    """What the part gives, of its library, whose names are the part's own."""
    tensors = {name: tensor for tensor, name in part.gives.items()}
    found = library([known[part.takes[spec.name]] for spec in library.takes()])
    return {tensors[spec.name]: tensor for spec, tensor in zip(library.gives(), found, strict=True)}


def _through(part: Part, known: dict[str, Any]) -> dict[str, Any]:
    """What the part gives, computed by TensorFlow."""
    given = {f"{name}:0": known[tensor] for name, tensor in part.takes.items()}
    found = tf.graph_util.import_graph_def(part.graph, input_map=given, return_elements=[*part.gives], name="")
    return dict(zip(part.gives, found, strict=True))


def _named(spec: tf.TensorSpec, name: str) -> tf.TensorSpec:
    return tf.TensorSpec(spec.shape, spec.dtype, name)


def _spec(tensor: Any, has_open_batch: bool) -> tf.TensorSpec:
    shape = [None, *tensor.shape[1:]] if has_open_batch else tensor.shape
    return tf.TensorSpec(shape, tf.as_dtype(str(tensor.dtype)), tensor.name)
