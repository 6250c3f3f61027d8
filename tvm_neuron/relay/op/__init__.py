"""The operators of Relay, a family a file; `OPERATORS` has all of them by name, `namespace` what users call."""

from collections.abc import Callable
from typing import Any

from tvm_neuron.relay.ir.expr import MEANINGS
from tvm_neuron.relay.op import (
    convolution,
    create,
    dense,
    elementwise,
    image,
    indexing,
    nn,
    norm,
    pooling,
    reduce,
    shape,
    sorting,
    vision,
)
from tvm_neuron.relay.op.declare import OPERATORS, PUBLIC

__all__ = ["FAMILIES", "OPERATORS", "namespace"]

FAMILIES = (elementwise, reduce, shape, indexing, create, sorting, dense, convolution, pooling, norm, nn, image, vision)
"""The files, in the order of the manual."""

_WRAPPED: dict[str, Callable[..., Any]] = {"arange": create.arange, "meshgrid": shape.meshgrid, "topk": sorting.topk}
"""Functions that users call and that make calls of operators, or none."""

MEANINGS.update(PUBLIC)


def namespace(prefix: str = "") -> dict[str, Callable[..., Any]]:
    """What stands under `relay.<prefix>`: `nn`, `image`, `vision`, or nothing for the top level."""
    if not prefix:
        return {name: function for name, function in PUBLIC.items() if "." not in name} | _WRAPPED
    return {name.removeprefix(f"{prefix}."): each for name, each in PUBLIC.items() if name.startswith(f"{prefix}.")}
