"""NeuronCores from JAX: `compile` takes a function and the arguments to lower it with."""

from tvm_neuron.jax.compile_function import compile_function as compile  # noqa: A004 - what users call

__all__ = ["compile"]
