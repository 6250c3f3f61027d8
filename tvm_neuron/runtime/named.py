"""index_of: an input or output by its name or its number."""

from collections.abc import Sequence
from operator import index

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
