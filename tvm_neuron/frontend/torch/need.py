"""The import of torch, when a model of it is given."""

from importlib import import_module
from types import ModuleType

from tvm_neuron.errors import from_extra


def need_torch() -> ModuleType:
    """The module `torch`.

    Raises:
        OptionError: it, or what its exporter needs, is not installed.
    """
    with from_extra("torch", "a model of PyTorch"):
        import_module("onnxscript")
        return import_module("torch")
