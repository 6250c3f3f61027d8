"""JAX's functions, lowered to StableHLO by JAX itself."""

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

from tvm_neuron.errors import ModelError, OptionError

_LONGEST_CAUSE = 300


def need_jax() -> ModuleType:
    """The module `jax`.

    Raises:
        OptionError: it is not installed.
    """
    try:
        return import_module("jax")
    except ModuleNotFoundError as error:
        raise OptionError(
            "functions of JAX need the package 'jax', which is not installed: pip install 'tvm-neuron[jax]'"
        ) from error


def is_of_jax(model: Any) -> bool:
    """Whether it is a jitted function, or one that was lowered, of jax; which is not imported to find out."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(model, jax.stages.Wrapped | jax.stages.Lowered)


def lowered(function: Callable[..., Any], args: Sequence[Any]) -> Any:
    """The function for arguments like these, as a jax.stages.Lowered.

    Raises:
        OptionError: jax is not installed.
        ModelError: it can't be traced with them.
    """
    jax = need_jax()
    wrapped = function if isinstance(function, jax.stages.Wrapped) else jax.jit(function)
    try:
        return wrapped.lower(*args)
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        cause = f"{type(error).__name__}: {lines[0] if lines else ''}"[:_LONGEST_CAUSE]
        raise ModelError(f"JAX can't lower the function with these arguments: {cause}") from error
