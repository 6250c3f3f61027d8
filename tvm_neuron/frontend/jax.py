"""JAX's functions, lowered to StableHLO by JAX itself."""

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from tvm_neuron.errors import ModelError, from_extra
from tvm_neuron.frontend.cause import cause


def is_of_jax(model: Any, example_inputs: Any = None) -> bool:
    """Whether it is a function of jax.jit or jax.pmap, or one that was lowered; jax is not imported to find out.

    So is any function, if there are arrays or shapes of JAX among its example inputs.
    """
    jax = sys.modules.get("jax")
    if jax is None:
        return False
    if isinstance(model, jax.stages.Lowered) or _can_lower(jax, model):
        return True
    leaves = jax.tree.leaves(example_inputs) if callable(model) else ()
    return any(isinstance(leaf, jax.Array | jax.ShapeDtypeStruct) for leaf in leaves)


def _can_lower(jax: Any, model: Any) -> bool:
    """What jax.pmap gives is a plain function, with such a method."""
    method = getattr(model, "lower", None)
    return isinstance(model, jax.stages.Wrapped) or str(getattr(method, "__module__", "")).startswith("jax.")


def lowered(function: Callable[..., Any], args: Sequence[Any]) -> Any:
    """The function for arguments like these, as a jax.stages.Lowered.

    Raises:
        OptionError: jax is not installed.
        ModelError: it can't be traced with them.
    """
    with from_extra("jax", "a function of JAX"):
        jax = import_module("jax")
    wrapped: Any = function if _can_lower(jax, function) else jax.jit(function)
    try:
        return wrapped.lower(*args)
    except Exception as error:
        raise ModelError(f"JAX can't lower the function with these arguments: {cause(error)}") from error
