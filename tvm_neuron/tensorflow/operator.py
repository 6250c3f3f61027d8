"""The call of TensorFlow that runs a library, which is a string beside its inputs."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.ops import script_ops

from tvm_neuron.runtime.packed import unpacked

_TOKEN = "tvm_neuron_run"  # by which graphs that were saved find `_run` in a new process


def register() -> None:
    """Make saved graphs find the function in this process."""
    script_ops._py_funcs._funcs.update({_TOKEN: _run})


def call(library: tf.Tensor, digest: str, inputs: Sequence[tf.Tensor], outputs: Sequence[tf.TensorSpec]) -> list[Any]:
    """The tensors that the library gives, with the shapes and dtypes of `outputs`."""
    given = [library, tf.constant(digest), *inputs]
    found = tf.raw_ops.PyFunc(input=given, token=_TOKEN, Tout=[spec.dtype for spec in outputs])
    return [tf.ensure_shape(tensor, spec.shape) for tensor, spec in zip(found, outputs, strict=True)]


def _run(library: bytes, digest: bytes, *inputs: np.ndarray) -> list[np.ndarray]:
    executor, lock = unpacked(lambda: library, digest.decode())
    with lock:
        executor.run(**{spec.name: value for spec, value in zip(executor.inputs, inputs, strict=True)})
        return [executor.get_output(number).numpy().copy() for number in range(len(executor.outputs))]
