"""`relay.backend`: the choice of an executor and a runtime, of which there is one each, and the VM."""

from collections.abc import Mapping
from typing import Any

from tvm_neuron.errors import OptionError
from tvm_neuron.relay import vm

__all__ = ["Executor", "Runtime", "vm"]

_MICRO = "there is no code for microcontrollers; relay.build makes a library for TVM's runtime"


class _Choice:
    """A name and options of it, as `relay.build` takes them."""

    flag = ""
    names: tuple[str, ...] = ()
    refused: Mapping[str, object] = {}

    def __init__(self, name: str, options: Mapping[str, Any] | None = None) -> None:
        if name not in self.names:
            known = ", ".join(self.names)
            raise OptionError(f"relay.backend.{self.flag}: '{name}' is not here, only {known}: {_MICRO}")
        for key, value in (options or {}).items():
            if key in self.refused and value == self.refused[key]:
                raise OptionError(f"relay.backend.{self.flag}: {key}={value!r} is not here: {_MICRO}")
        self.name = name
        self.options = dict(options or {})

    def __getitem__(self, key: str) -> Any:
        return self.options[key]

    def __contains__(self, key: str) -> bool:
        return key in self.options


class Executor(_Choice):
    """What runs a library; all are `graph_executor.GraphModule`.

    Raises OptionError: the name is unknown, or an option asks for C code.
    """

    flag, names, refused = "Executor", ("graph", "aot", "vm"), {"interface-api": "c", "unpacked-api": True}


class Runtime(_Choice):
    """What a library is loaded by: TVM's runtime in C++.

    Raises OptionError: the name is another, or an option asks for a library without one.
    """

    flag, names, refused = "Runtime", ("cpp",), {"system-lib": True}
