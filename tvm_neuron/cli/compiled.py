"""Opens what `compile` wrote: a NEFF or a library, told apart by their contents."""

from typing import Any

from tvm_neuron import neff
from tvm_neuron.errors import NeffError

_ELF = b"\x7fELF"


def open_compiled(path: str) -> Any:
    """A `Neff`, or a TVM module.

    Raises:
        NeffError: it is neither, or damaged.
    """
    data = neff.read_file(path)
    return _open_library(path) if data.startswith(_ELF) else neff.read(data)


def _open_library(path: str) -> Any:
    import tvm

    try:
        return tvm.runtime.load_module(path)
    except Exception as error:  # whatever the dynamic loader finds wrong
        raise NeffError(f"'{path}' can't be loaded as a compiled library: {str(error).splitlines()[-1]}") from error
