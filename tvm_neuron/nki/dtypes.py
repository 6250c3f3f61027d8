"""Dtypes as kernels name them, and what comes of two of them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.isa.dtypes import CODES, DTYPES
from tvm_neuron.nki.source import wrong

_ALIASES = {"bool_": "bool", "fp32": "float32", "bf16": "bfloat16", "fp16": "float16", "bfp16": "bfloat16"}
_WIDTH = {"float32": 3, "bfloat16": 2, "float16": 2, "float8_e4m3": 1, "float8_e5m2": 1}
_OF_BOTH = {2: "float32", 1: "bfloat16"}  # of two different floats of that width


def dtype_name(dtype: Any) -> str:
    """The name of a dtype that is given as a NumPy dtype, a class, a number's or a string.

    Raises:
        KernelError: the chip has no such dtype.
    """
    try:
        name = dtype if isinstance(dtype, str) else np.dtype(dtype).name
    except TypeError:
        name = str(dtype)
    name = _ALIASES.get(name, name)
    if name not in CODES:
        raise wrong(f"dtype {name} is none of those that the model has: {', '.join(CODES)}")
    return name


def as_held(what: str, values: NDArray[Any], name: str) -> NDArray[Any]:
    """An array as device memory holds it, in the dtype `name`; floats are rounded.

    Raises:
        KernelError: it has whole numbers that the dtype has not.
    """
    held = values.astype(DTYPES[name], copy=False)
    if held is not values and held.dtype.kind in "iu" and not np.array_equal(held, values):
        limits = np.iinfo(held.dtype)
        raise wrong(
            f"{what} has numbers from {values.min()} to {values.max()}, and becomes {name}, which has whole ones from "
            f"{limits.min} to {limits.max}: change it before"
        )
    return held


def promoted(left: str, right: str) -> str:
    """The dtype of an operation on two: floats beat integers, the wider float wins."""
    if left == right:
        return left
    floats = [name for name in (left, right) if name in _WIDTH]
    if len(floats) == 2:
        wider = max(floats, key=lambda name: _WIDTH[name])
        return _OF_BOTH[_WIDTH[wider]] if _WIDTH[left] == _WIDTH[right] else wider
    if floats:
        return floats[0]
    both = np.promote_types(DTYPES[left], DTYPES[right]).name
    return both if both in CODES else "float32"


def of_number(value: Any, beside: str) -> str:
    """The dtype of an operation on a tile and a number."""
    kind = np.asarray(value).dtype.kind
    return promoted(beside, "float32" if kind == "f" else "int32" if kind in "iu" else "uint8")
