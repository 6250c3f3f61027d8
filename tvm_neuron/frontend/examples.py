"""Example inputs of a call, by the names of a model's inputs."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tvm_neuron.errors import ModelError


def shapes_by_name(example_inputs: Any, names: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Shapes of examples: an array, a tuple or list of them in the order of `names`, or a dictionary by name.

    Raises:
        ModelError: there are more or fewer than names.
    """
    if not isinstance(example_inputs, Mapping):
        several = example_inputs if isinstance(example_inputs, tuple | list) else (example_inputs,)
        if len(several) != len(names):
            raise ModelError(f"{len(several)} example inputs of a model with {len(names)}: {', '.join(names)}")
        example_inputs = dict(zip(names, several, strict=True))
    return {name: tuple(np.shape(value)) for name, value in example_inputs.items()}
