"""Reductions over dimensions: sums, products, extremes, truths, and places of extremes."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import helper

from tvm_neuron.frontend.refused import RefusedError
from tvm_neuron.frontend.xla.operators.combining import combiner, folded
from tvm_neuron.frontend.xla.operators.elementwise import compared
from tvm_neuron.frontend.xla.operators.shapes import ints
from tvm_neuron.frontend.xla.region import Converter
from tvm_neuron.frontend.xla.scope import Scope, dtype_of, shape_of

_REDUCE = {
    "stablehlo.add": ("ReduceSum", "Add"),
    "stablehlo.multiply": ("ReduceProd", "Mul"),
    "stablehlo.maximum": ("ReduceMax", "Max"),
    "stablehlo.minimum": ("ReduceMin", "Min"),
}
_OF_TRUTHS = {"stablehlo.and": "stablehlo.minimum", "stablehlo.or": "stablehlo.maximum"} | {
    "stablehlo.maximum": "stablehlo.maximum",
    "stablehlo.minimum": "stablehlo.minimum",
}


def body_of(op: Any, region: int = 0) -> list[Any]:
    """The operators of a region but for its return."""
    return [each.operation for each in op.regions[region].blocks[0].operations][:-1]


def neutral(name: str, dtype: np.dtype[Any]) -> Any:
    """What changes nothing when it is combined so."""
    if name in ("stablehlo.add", "stablehlo.multiply"):
        return dtype.type(name == "stablehlo.multiply")
    sign = -1 if name == "stablehlo.maximum" else 1
    if dtype.kind in "iu":
        return np.iinfo(dtype).min if sign < 0 else np.iinfo(dtype).max
    return dtype.type(sign * np.inf)


def _reduce(scope: Scope, op: Any, converters: Mapping[str, Converter]) -> None:
    """By ONNX's reductions where there is one, else step by step."""
    body = body_of(op)
    if len(op.results) == 2 and _places(scope, op, body):
        return
    known_names = _OF_TRUTHS if dtype_of(op.operands[0]) == np.bool_ else _REDUCE
    if len(op.results) != 1 or not is_plain(op, body) or body[0].name not in known_names:
        _in_steps(scope, op, converters)
        return
    (value, start), (result,) = op.operands, op.results
    name, dtype = body[0].name, dtype_of(value)
    axes = ints(op, "dimensions")
    if dtype == np.bool_:
        whole = helper.np_dtype_to_tensor_dtype(np.dtype(np.int32))
        numbers = scope.graph.add("Cast", scope.full(value), to=whole)
        found = _reduced(scope, _OF_TRUTHS[name], numbers, axes, scope.graph.add("Cast", scope.full(start), to=whole))
        scope.set(result, scope.graph.add("Cast", found, to=helper.np_dtype_to_tensor_dtype(dtype)))
        return
    known = scope.known(start)
    is_neutral = known is not None and np.all(known == neutral(name, dtype))
    scope.set(result, _reduced(scope, name, scope.full(value), axes, "" if is_neutral else scope.full(start)))


def is_plain(op: Any, body: list[Any]) -> bool:
    """Whether one operator alone combines the two elements."""
    return len(body) == 1 and [*body[0].operands] in ([*arguments_of(op)], [*reversed(arguments_of(op))])


def arguments_of(op: Any) -> list[Any]:
    """What the region of an operator combines."""
    return list(op.regions[0].blocks[0].arguments)


def _in_steps(scope: Scope, op: Any, converters: Mapping[str, Converter]) -> None:
    """By any computation, of one tensor or of several together: the starts first, then halves with each other."""
    count, axes = len(op.results), ints(op, "dimensions")
    values, starts = op.operands[:count], op.operands[count:]
    combine = combiner(scope, op.regions[0], converters)
    names, sizes = [scope.full(value) for value in values], [*shape_of(values[0])]
    if 0 in sizes:
        raise RefusedError("it combines no elements otherwise than by one operator")
    for axis in axes:
        names, sizes[axis] = folded(scope, combine, names, sizes, axis), 1
    left = [shape_of(result) for result in op.results]
    names = [scope.reshaped(name, shape) for name, shape in zip(names, left, strict=True)]
    begun = [scope.graph.add("Expand", scope.full(start), scope.graph.ints(left[0])) for start in starts]
    for result, name in zip(op.results, combine(begun, names, left[0]), strict=True):
        scope.set(result, name)


def _reduced(scope: Scope, name: str, value: str, axes: list[int], start: str) -> str:
    """Over the axes, combined with `start` if there is one."""
    reduce, combine = _REDUCE[name]
    found = scope.graph.add(reduce, value, scope.graph.ints(axes), keepdims=0) if axes else value
    return str(scope.graph.add(combine, found, start)) if start else str(found)


def _places(scope: Scope, op: Any, body: list[Any]) -> bool:
    """An extreme and where it is, as jnp.argmax has it; False where it is anything else."""
    compares = [each for each in body if each.name == "stablehlo.compare"]
    directions = {compared(each) for each in compares} & {"GT", "LT", "GE", "LE"}
    axes = ints(op, "dimensions")
    value, places = op.operands[:2]
    first = compares[0] if compares else None
    is_by_value = first is not None and list(first.operands) == [
        op.regions[0].blocks[0].arguments[0],
        op.regions[0].blocks[0].arguments[2],
    ]
    counted = scope.tensors[places].sizes
    known = scope.graph.constants.get(scope.tensors[places].name)
    is_iota = len(axes) == 1 and known is not None and np.array_equal(known.ravel(), np.arange(counted[axes[0]]))
    direction = compared(first) if first is not None and is_by_value else ""
    if not is_iota or direction not in ("GT", "LT") or not directions <= {"GT", "LT"}:
        return False
    pick, extreme = ("ArgMax", "ReduceMax") if direction == "GT" else ("ArgMin", "ReduceMin")
    name = scope.full(value)
    scope.set(op.results[0], scope.graph.add(extreme, name, scope.graph.ints(axes), keepdims=0))
    found = scope.graph.add(pick, name, axis=axes[0], keepdims=0)
    to = helper.np_dtype_to_tensor_dtype(dtype_of(op.results[1]))
    scope.set(op.results[1], scope.graph.add("Cast", found, to=to))
    return True


CONVERTERS: dict[str, Converter] = {"stablehlo.reduce": _reduce}
