"""index_of: an input or output by its name or its number; given_inputs: which ones `set_input` was given."""

from collections.abc import Mapping, Sequence
from operator import index
from typing import Any

import numpy as np

from tvm_neuron.errors import InputError
from tvm_neuron.neff import TensorInfo


def index_of(key: str | int, infos: Sequence[TensorInfo], kind: str = "input") -> int:
    """The place of one of the model's inputs, or outputs.

    Raises:
        InputError: there is none of that name or number.
    """
    names = [info.name for info in infos]
    try:
        found = names.index(key) if isinstance(key, str) else index(key)
    except (TypeError, ValueError):
        found = -1
    if not 0 <= found < len(names):
        has = f"it {'takes' if kind == 'input' else 'gives'} {', '.join(map(repr, names))}"
        raise InputError(f"{kind} {key!r} is not one of the model's; {has}")
    return found


def given_inputs(key: Any, value: Any, values: Mapping[str, Any]) -> list[tuple[Any, Any]]:
    """The inputs that `set_input` was given, with their values; some may be called `key` and `value` themselves."""
    if isinstance(key, str | int | np.integer):
        return [(key, value), *values.items()]
    both = [(name, each) for name, each in (("key", key), ("value", value)) if each is not None]
    return [*both, *values.items()]
