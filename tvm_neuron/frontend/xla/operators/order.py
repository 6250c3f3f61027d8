"""Sorting, and the largest of a row."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import helper

from tvm_neuron.frontend.refused import RefusedError
from tvm_neuron.frontend.xla.operators.elementwise import compared
from tvm_neuron.frontend.xla.region import Converter
from tvm_neuron.frontend.xla.scope import Scope, dtype_of, shape_of


def _sort(scope: Scope, op: Any, _: Mapping[str, Converter]) -> None:
    """By TopK of all, which keeps the order of equal ones: by the last key first; other operands follow the keys."""
    axis = int(op.attributes["dimension"])
    returned = list(op.regions[0].blocks[0].operations)[-1].operation.operands[0]
    keys = _keys(returned, list(op.regions[0].blocks[0].arguments))
    if not keys:
        raise RefusedError("it compares otherwise than by one key after the other, each of which rises or falls")
    graph, size = scope.graph, shape_of(op.operands[0])[axis]
    names = [scope.full(value) for value in op.operands]
    for number, direction in reversed(keys):
        largest = int(direction in ("GT", "GE"))
        sorted_, places = graph.add(
            "TopK", names[number], graph.ints([size]), axis=axis, largest=largest, sorted=1, results=2
        )
        names = [
            sorted_ if other == number else graph.add("GatherElements", name, places, axis=axis)
            for other, name in enumerate(names)
        ]
    for result, name in zip(op.results, names, strict=True):
        scope.set(result, name)


def _keys(value: Any, arguments: list[Any]) -> list[tuple[int, str]]:
    """By which operands `value` says that the first comes first, and how: a < b, or (a < b) | (a == b) & (...).

    Nothing where it is otherwise.
    """
    owner = value.owner
    name = getattr(owner, "name", "")
    if name == "stablehlo.compare":
        for number, pair in enumerate(zip(arguments[::2], arguments[1::2], strict=True)):
            if all(map(_reads, owner.operands, pair)):
                return [(number, compared(owner))] if compared(owner) in ("LT", "LE", "GT", "GE") else []
        return []
    if name != "stablehlo.or":
        return []
    for first, rest in (owner.operands, reversed(owner.operands)):
        keys, both = _keys(first, arguments), rest.owner
        if len(keys) != 1 or getattr(both, "name", "") != "stablehlo.and":
            continue
        number = keys[0][0]
        for same, following in (both.operands, reversed(both.operands)):
            found = _keys(following, arguments)
            if found and _is_same(same, arguments[2 * number : 2 * number + 2]):
                return [*keys, *found]
    return []


def _is_same(value: Any, pair: list[Any]) -> bool:
    owner = value.owner
    return (
        getattr(owner, "name", "") == "stablehlo.compare" and compared(owner) == "EQ"
        and all(map(_reads, owner.operands, pair))
    )  # fmt: skip


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
