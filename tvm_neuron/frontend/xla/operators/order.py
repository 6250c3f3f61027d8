"""Sorting, and the largest of a row."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import helper

from tvm_neuron.frontend.refused import RefusedError
from tvm_neuron.frontend.xla.operators.elementwise import compared
from tvm_neuron.frontend.xla.operators.reductions import body_of
from tvm_neuron.frontend.xla.region import Converter
from tvm_neuron.frontend.xla.scope import Scope, dtype_of, shape_of


def _sort(scope: Scope, op: Any, _: Mapping[str, Converter]) -> None:
    """By TopK of all, which keeps the order of equal ones; other operands follow the first."""
    keys, *others = op.operands
    axis = int(op.attributes["dimension"])
    first, second = list(op.regions[0].blocks[0].arguments)[:2]
    compares = [each for each in body_of(op) if each.name == "stablehlo.compare"]
    returned = list(op.regions[0].blocks[0].operations)[-1].operation.operands[0]
    last = compares[-1] if compares else None
    if last is None or last.results[0] != returned or not all(map(_reads, last.operands, (first, second))):
        raise RefusedError("it compares otherwise than by one key that rises or falls")
    direction = compared(last)
    graph, size = scope.graph, shape_of(keys)[axis]
    largest = int(direction in ("GT", "GE"))
    values, places = graph.add(
        "TopK", scope.full(keys), graph.ints([size]), axis=axis, largest=largest, sorted=1, results=2
    )
    scope.set(op.results[0], values)
    for value, result in zip(others, op.results[1:], strict=True):
        scope.set(result, graph.add("GatherElements", scope.full(value), places, axis=axis))


def _reads(value: Any, argument: Any) -> bool:
    """Whether a comparison's operand is the argument itself, or follows from it alone (as where -0 is made 0)."""
    pending, seen = [value], set()
    while pending:
        each = pending.pop()
        if each == argument:
            seen.add(True)
            continue
        owner = each.owner
        if not hasattr(owner, "operands"):
            return False  # another argument
        pending.extend(owner.operands)
    return bool(seen)


def _top_k(scope: Scope, op: Any, _: Mapping[str, Converter]) -> None:
    (value,) = op.operands
    k = int(op.attributes["k"])
    graph = scope.graph
    values, places = graph.add("TopK", scope.full(value), graph.ints([k]), axis=-1, largest=1, sorted=1, results=2)
    scope.set(op.results[0], values)
    to = helper.np_dtype_to_tensor_dtype(np.dtype(dtype_of(op.results[1])))
    scope.set(op.results[1], graph.add("Cast", places, to=to))


CONVERTERS: dict[str, Converter] = {"chlo.top_k": _top_k, "stablehlo.sort": _sort}
