"""create_workload: a network as a module, and random weights for it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import tvm
from numpy.typing import NDArray

from tvm_neuron.relay.infer import infer_types
from tvm_neuron.relay.ir.expr import Function
from tvm_neuron.relay.modules import module_of

INPUT = "data"
Initializer = Callable[[str, NDArray[Any]], None]
"""Fills in the array of a weight, by its name."""

_ONES, _ZEROS = ("gamma", "var"), ("beta", "bias", "mean")


class Xavier:
    """Uniform numbers whose size keeps that of what passes through; drawn from `seed` and the weight's name."""

    def __init__(self, magnitude: float = 3.0, seed: int = 0) -> None:
        self._magnitude = magnitude
        self._seed = seed

    def __call__(self, name: str, array: NDArray[Any]) -> None:
        """Fills in `array`: ones for scales and variances, zeros for shifts, random numbers for the rest."""
        if name.endswith(_ONES + _ZEROS):
            array[...] = float(name.endswith(_ONES))
            return
        reach = np.prod(array.shape[2:], dtype=float)
        inputs, outputs = (size * reach for size in (array.shape[1], array.shape[0]))
        scale = np.sqrt(self._magnitude / (reach if array.shape[1] == 1 else (inputs + outputs) / 2))
        array[...] = np.random.default_rng([self._seed, *name.encode()]).uniform(-scale, scale, array.shape)


def create_workload(
    net: Function, initializer: Initializer | None = None, seed: int = 0
) -> tuple[tvm.IRModule, dict[str, tvm.runtime.Tensor]]:
    """The module of a network with types, and weights for all its inputs but those called `data`.

    NumPy's own random numbers begin anew from `seed`, as in TVM 0.18: scripts rely on it to draw the same data twice.
    """
    np.random.seed(seed)
    mod = infer_types(module_of(net))
    fill = initializer or Xavier(seed=seed)
    params = {}
    for param in mod["main"].params:
        if param.name_hint != INPUT:
            array = np.zeros(param.checked_type.concrete_shape, param.checked_type.dtype)
            fill(param.name_hint, array)
            params[str(param.name_hint)] = tvm.runtime.tensor(array)
    return mod, params
