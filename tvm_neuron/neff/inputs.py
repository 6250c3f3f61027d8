"""check_inputs: arrays given at run time against what the model takes."""

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from tvm_neuron.errors import InputError
from tvm_neuron.neff.neff import TensorInfo


def check_inputs(expected: Sequence[TensorInfo], given: Mapping[str, NDArray[Any]]) -> None:
    """Every input is there, with its shape and dtype, and nothing else.

    Raises:
        InputError: the first of: one is missing, one too many, a wrong shape, a wrong dtype.
    """
    names = [info.name for info in expected]
    takes = ", ".join(f"'{name}'" for name in names)
    for name in names:
        if name not in given:
            raise InputError(f"input '{name}' is missing; the model takes {takes}")
    for name in given:
        if name not in names:
            raise InputError(f"input '{name}' is not one of the model's; it takes {takes}")
    for info in expected:
        array = given[info.name]
        if array.shape != info.shape:
            raise InputError(f"input '{info.name}' has shape {list(array.shape)}; the model takes {list(info.shape)}")
        if array.dtype.name != info.dtype:
            raise InputError(f"input '{info.name}' is {array.dtype.name}; the model takes {info.dtype}: convert it")
