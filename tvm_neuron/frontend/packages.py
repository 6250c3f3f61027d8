"""needed: a package of another framework, imported when it is used."""

from importlib import import_module
from types import ModuleType

from tvm_neuron.errors import ModelError


def needed(package: str, importer: str) -> ModuleType:
    """The package that `importer` reads models with.

    Raises ModelError: it is not installed.
    """
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        raise ModelError(f"{importer} needs the package '{error.name}': pip install {error.name}") from error
