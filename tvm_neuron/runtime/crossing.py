"""register_errors: our errors keep their type when they cross TVM's C++; else they come back as RuntimeError."""

import tvm_ffi

from tvm_neuron import errors


def register_errors() -> None:
    """Make TVM know every class of the error tree by its name, and Ctrl-C: of that it makes an empty RuntimeError."""
    for name, cls in vars(errors).items():
        is_ours = isinstance(cls, type) and issubclass(cls, errors.NeuronError)
        if is_ours and name not in tvm_ffi.core.ERROR_NAME_TO_TYPE:  # InternalError is TVM's own
            tvm_ffi.register_error(name, cls)
    tvm_ffi.register_error(KeyboardInterrupt)
