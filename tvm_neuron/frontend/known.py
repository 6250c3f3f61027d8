"""What is known of the values in a function at compile time, and who reads them."""

import math
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import tvm
from numpy.typing import NDArray
from tvm import relax

from tvm_neuron.frontend.decompose.shapes import static_shape
from tvm_neuron.frontend.origin import bindings_of

Made = Mapping[relax.Var, relax.Expr]
"""The values of variables."""
_FOLDED: Mapping[str, Callable[..., Any]] = {
    "relax.add": np.add, "relax.subtract": np.subtract, "relax.multiply": np.multiply, "relax.divide": np.divide,
    "relax.sqrt": np.sqrt, "relax.rsqrt": lambda x: 1 / np.sqrt(x),
}  # fmt: skip
"""What becomes of constants, as batch norms have them."""


def constant_of(value: relax.Expr, made: Made) -> NDArray[np.float64] | None:
    """What is known of a value of float32; None where it depends on an input."""
    value = made.get(value, value)
    if isinstance(value, tvm.ir.GenericConst):
        return value.value.numpy().astype(np.float64) if str(value.ty.dtype) == "float32" else None
    name = getattr(getattr(value, "op", None), "name", "")
    if name == "relax.reshape" and (shape := static_shape(value)) is not None:
        whole = constant_of(value.args[0], made)
        return None if whole is None else whole.reshape(shape)
    parts = [constant_of(part, made) for part in value.args] if name in _FOLDED else [None]
    return None if any(part is None for part in parts) else _FOLDED[name](*parts)


def is_of_channels(shape: tuple[int, ...] | None, result: tuple[int, ...]) -> bool:
    """Whether an array has one number for each channel of a result [N, C, *dims], or one for all."""
    if shape is None:
        return False
    whole = (*[1] * (len(result) - len(shape)), *shape)
    return math.prod(shape) == 1 or whole == (1, result[1], *[1] * (len(result) - 2))


def uses_of(func: relax.Function) -> Counter[relax.Var]:
    """How many bindings read each variable, and whether the result does."""
    found: Counter[relax.Var] = Counter()
    for value in [*(binding.value for binding in bindings_of(func)), func.body.body]:
        read: set[relax.Var] = set()
        relax.analysis.post_order_visit(value, partial(_keep, read))
        found.update(read)
    return found


def _keep(read: set[relax.Var], part: relax.Expr) -> None:
    if isinstance(part, relax.Var):
        read.add(part)
