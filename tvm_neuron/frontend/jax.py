"""JAX's functions, lowered to StableHLO by JAX itself."""

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from tvm_neuron.errors import ModelError, from_extra
from tvm_neuron.frontend.cause import cause


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
    with from_extra("jax", "a function of JAX"):
        jax = import_module("jax")
    wrapped = function if isinstance(function, jax.stages.Wrapped) else jax.jit(function)
    try:
        return wrapped.lower(*args)
    except Exception as error:
        raise ModelError(f"JAX can't lower the function with these arguments: {cause(error)}") from error
