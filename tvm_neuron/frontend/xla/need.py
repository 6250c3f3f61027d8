"""The import of jaxlib, when StableHLO is given."""

from importlib import import_module
from types import ModuleType

from tvm_neuron.errors import OptionError


def need_jaxlib() -> ModuleType:
    """`jaxlib.mlir.ir`, with the dialects of StableHLO known.

    Raises:
        OptionError: it is not installed.
    """
    try:
        return import_module("jaxlib.mlir.ir")
    except ModuleNotFoundError as error:
        raise OptionError(
            "models in StableHLO need the package 'jaxlib', which is not installed: pip install 'tvm-neuron[jax]'"
        ) from error
