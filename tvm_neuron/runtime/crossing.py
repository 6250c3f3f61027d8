"""register_errors: our errors keep their type when they cross TVM's C++; else they come back as RuntimeError."""

import tvm_ffi

from tvm_neuron import errors


def register_errors() -> None:
    """Make TVM know every class of the error tree by its name."""
    for name, cls in vars(errors).items():
        if isinstance(cls, type) and issubclass(cls, errors.NeuronError):
            tvm_ffi.register_error(name, cls)
