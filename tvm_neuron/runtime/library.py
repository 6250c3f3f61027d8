"""The C++ half of the runtime: loads `libneuron_module.so` and wraps the functions it registers."""

import ctypes
from collections.abc import Mapping
from pathlib import Path

import tvm
import tvm_ffi

from tvm_neuron.errors import NeuronError

_LIBRARY = Path(__file__).parent / "libneuron_module.so"

FACTORY_ENTRY = "__factory__"
"""Entry that names the function by which a library hands out executors."""

MANIFEST_ENTRY = "__manifest__"
"""Entry that holds the manifest as JSON."""


def load_library() -> None:
    """Make `kind == "neuron"` known to TVM's runtime; without it, loading a library that holds such a module fails."""
    if not _LIBRARY.is_file():
        raise NeuronError(f"{_LIBRARY} is missing: install the package, or run `python setup.py build_ext --inplace`")
    ctypes.CDLL(str(_LIBRARY), mode=ctypes.RTLD_LOCAL)


def make_module(entries: Mapping[str, bytes]) -> tvm.runtime.Module:
    """A runtime module holding `entries`; each not named `__...__` is a NEFF and callable under its name."""
    return tvm_ffi.get_global_func("tvm_neuron.runtime.make_module")(dict(entries))


def entry_names(module: tvm.runtime.Module) -> list[str]:
    """The names of the entries of one module of kind `neuron`."""
    return [str(name) for name in tvm_ffi.get_global_func("tvm_neuron.runtime.entry_names")(module)]


def entry(module: tvm.runtime.Module, name: str) -> bytes:
    """One entry of a module of kind `neuron`, copied."""
    value: bytes = tvm_ffi.get_global_func("tvm_neuron.runtime.entry")(module, name)
    return value
