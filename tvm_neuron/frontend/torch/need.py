"""The import of torch, when a model of it is given."""

from importlib import import_module
from types import ModuleType

from tvm_neuron.errors import OptionError

_PACKAGES = ("torch", "onnxscript")


def need_torch() -> ModuleType:
    """The module `torch`.

    Raises:
        OptionError: it, or what its exporter needs, is not installed.
    """
    for package in _PACKAGES:
        try:
            import_module(package)
        except ModuleNotFoundError as error:
            raise OptionError(
                f"models of PyTorch need the package '{error.name}', which is not installed: pip install "
                "'tvm-neuron[torch]'"
            ) from error
    return import_module("torch")
