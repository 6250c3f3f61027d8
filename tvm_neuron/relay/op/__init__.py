"""The operators of Relay, a family a file; `OPERATORS` has all of them by name, `namespace` what users call."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

from tvm_neuron.errors import ModelError
from tvm_neuron.relay.ir.expr import MEANINGS, Op
from tvm_neuron.relay.op import (
    annotation,
    boxes,
    convolution,
    counted,
    create,
    dense,
    elementwise,
    indexing,
    layers,
    norm,
    pooling,
    qnn,
    reduce,
    resizing,
    sampling,
    segments,
    shape,
    signal,
    sorting,
    sparse,
)
from tvm_neuron.relay.op.declare import OPERATORS, PUBLIC

__all__ = ["FAMILIES", "OPERATORS", "Op", "annotation", "get", "image", "namespace", "nn", "quantised", "vision"]

FAMILIES = (
    elementwise, reduce, shape, indexing, create, sorting, dense, sparse, convolution, pooling, norm, layers, resizing,
    boxes, sampling, signal, segments, counted, annotation, qnn,
)  # fmt: skip
"""The files, in the order of the manual."""

_WRAPPED: dict[str, Callable[..., Any]] = {
    "arange": create.arange, "meshgrid": shape.meshgrid, "topk": sorting.topk,
    "segment_sum": segments.segment_sum,
}  # fmt: skip
"""Functions that users call and that make calls of operators, or none."""

MEANINGS.update(PUBLIC)


def namespace(prefix: str = "") -> dict[str, Callable[..., Any]]:
    """What stands under `relay.<prefix>`: `nn`, `image`, `vision`, or nothing for the top level."""
    if not prefix:
        return {name: function for name, function in PUBLIC.items() if "." not in name} | _WRAPPED
    return {name.removeprefix(f"{prefix}."): each for name, each in PUBLIC.items() if name.startswith(f"{prefix}.")}


def get(name: str) -> Op:
    """The operator of a name, as calls have it.

    Raises ModelError: there is none.
    """
    if name not in OPERATORS:
        raise ModelError(f"there is no operator '{name}'; docs/relay.md lists those that are")
    return Op(name)


def _module(prefix: str) -> ModuleType:
    module = ModuleType(f"tvm.relay.op.{prefix}", f"Relay's operators under `{prefix}`.")
    vars(module).update(namespace(prefix))
    return module


nn, image, vision = map(_module, ("nn", "image", "vision"))
quantised = ModuleType("tvm.relay.qnn", "Relay's operators on quantised tensors, also under `op`.")
vars(quantised).update(namespace("qnn"), op=_module("qnn"))
globals().update(namespace())  # `relay.op.add` is `relay.add`
