"""Calls, which are written out; loops, written out where their number is known, else ONNX's; branches."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tvm_neuron.frontend.graph import tensor_type
from tvm_neuron.frontend.onnx.control_flow import most_rounds
from tvm_neuron.frontend.refused import RefusedError
from tvm_neuron.frontend.xla.operators.elementwise import compared
from tvm_neuron.frontend.xla.region import Converter, convert_region
from tvm_neuron.frontend.xla.scope import Scope, Tensor, dtype_of, shape_of


def _written_out(scope: Scope, block: Any, tensors: list[Tensor], converters: Mapping[str, Converter]) -> list[Tensor]:
    """What a block returns for these arguments."""
    inner = scope.inner()
    for argument, tensor in zip(block.arguments, tensors, strict=True):
        inner.tensors[argument] = tensor
    return [inner.tensors[value] for value in convert_region(inner, block, converters)]


def _call(scope: Scope, op: Any, converters: Mapping[str, Converter]) -> None:
    key = "callee" if "callee" in op.attributes else "decomposition"
    function = scope.functions.get(str(op.attributes[key].value))
    if function is None:
        raise RefusedError(f"the module has no function {op.attributes[key]}")
    given = [scope.tensors[value] for value in op.operands]
    found = _written_out(scope, function.regions[0].blocks[0], given, converters)
    for result, tensor in zip(op.results, found, strict=True):
        scope.tensors[result] = tensor


def _custom_call(scope: Scope, op: Any, _: Mapping[str, Converter]) -> None:
    target = str(op.attributes["call_target_name"].value)
    if target not in ("Sharding", "annotate_device_placement"):
        raise RefusedError(f"it calls '{target}', which is no part of StableHLO")
    for value, result in zip(op.operands, op.results, strict=True):
        scope.tensors[result] = scope.tensors[value]


def _while(scope: Scope, op: Any, converters: Mapping[str, Converter]) -> None:
    condition, body = (region.blocks[0] for region in op.regions)
    times = _trip_count(scope, op, condition, body)
    if times is None:
        _loop(scope, op, converters, "")
        return
    tensors = [scope.tensors[value] for value in op.operands]
    begun = len(scope.graph.nodes)
    for number in range(times):
        tensors = _written_out(scope, body, tensors, converters)
        if times > most_rounds((len(scope.graph.nodes) - begun) // (number + 1)):
            del scope.graph.nodes[begun:]
            _loop(scope, op, converters, scope.graph.constant(times, np.int64))
            return
    for result, tensor in zip(op.results, tensors, strict=True):
        scope.tensors[result] = tensor


def _trip_count(scope: Scope, op: Any, condition: Any, body: Any) -> int | None:
    """How often a loop runs that counts from a constant to a constant; None where that is not known."""
    arguments = list(condition.arguments)
    last = list(condition.operations)[-1].operation.operands[0].owner
    if getattr(last, "name", "") != "stablehlo.compare" or compared(last) not in ("LT", "LE", "GT", "GE"):
        return None
    counter, limit = last.operands
    if counter not in arguments:
        return None
    place = arguments.index(counter)
    end = _number(scope, limit, op, condition, body)
    returned = list(body.operations)[-1].operation.operands[place].owner
    if getattr(returned, "name", "") not in ("stablehlo.add", "stablehlo.subtract"):
        return None
    operands = list(returned.operands)
    if body.arguments[place] not in operands:
        return None
    step = _number(scope, operands[1 - operands.index(body.arguments[place])], op, condition, body)
    start = scope.known(op.operands[place])
    if start is None or end is None or not step:
        return None
    step = step if returned.name == "stablehlo.add" else -step
    first, direction = int(start), compared(last)
    if (step > 0) != (direction in ("LT", "LE")):
        return None
    gap = (end - first) * (1 if step > 0 else -1) + (direction in ("LE", "GE"))
    return max(0, -(-gap // abs(step)))


def _number(scope: Scope, value: Any, op: Any, *blocks: Any) -> int | None:
    """A whole number that is a constant, there or in the loop's surroundings."""
    for block in blocks:
        if value in list(block.arguments):
            found = scope.known(op.operands[list(block.arguments).index(value)])
            carried = list(blocks[-1].operations)[-1].operation.operands[list(block.arguments).index(value)]
            is_same = carried == blocks[-1].arguments[list(block.arguments).index(value)]
            return int(found) if found is not None and is_same and found.ndim == 0 else None
    owner = value.owner
    if getattr(owner, "name", "") == "stablehlo.constant":
        return int(np.array(owner.attributes["value"]).ravel()[0])
    found = scope.known(value) if value in scope.tensors else None
    return int(found) if found is not None and found.ndim == 0 else None


def _loop(scope: Scope, op: Any, converters: Mapping[str, Converter], times: str) -> None:
    """ONNX's Loop, whose body also tells whether it goes on; `times` is how often at most, if that is known."""
    graph = scope.graph
    condition, body = (region.blocks[0] for region in op.regions)
    given = [scope.full(value) for value in op.operands]
    start = _written_out(scope, condition, [scope.tensors[value] for value in op.operands], converters)
    inner = Scope(graph.body(), scope.functions, dict(scope.tensors))
    names = [f"{name}_state{number}" for number, name in enumerate(given)]  # a tensor may begin several
    states = [Tensor(name, shape_of(value)) for name, value in zip(names, op.operands, strict=True)]
    found = _written_out(inner, body, states, converters)
    carried = []
    for tensor, result in zip(found, op.results, strict=True):
        inner.tensors[result] = tensor
        carried.append(inner.full(result))
    after = [Tensor(name, shape_of(result)) for name, result in zip(carried, op.results, strict=True)]
    goes_on = _written_out(inner, condition, after, converters)
    outputs = [inner.graph.add("Identity", name) for name in (goes_on[0].name, *carried)]
    types = [(shape_of(value), dtype_of(value)) for value in op.results]
    inputs = [tensor_type("round", (), np.int64), tensor_type("before", (), np.bool_)]
    inputs += [tensor_type(name, *kind) for name, kind in zip(names, types, strict=True)]
    kinds = [((), np.bool_), *types]
    proto = inner.graph.proto("body", inputs, [tensor_type(n, *kind) for n, kind in zip(outputs, kinds, strict=True)])
    made = graph.add("Loop", times, "" if times else start[0].name, *given, results=len(given), body=proto)
    for result, name in zip(op.results, made if len(given) > 1 else [made], strict=True):
        scope.set(result, name)


def _case(scope: Scope, op: Any, converters: Mapping[str, Converter]) -> None:
    """Branch by branch; a number outside of their range means the last."""
    (chosen,) = op.operands
    graph, count = scope.graph, len(op.regions)
    results = _branches(scope, op, converters)
    names = results[-1]
    for number in range(count - 2, -1, -1):
        is_this = graph.add("Equal", scope.full(chosen), graph.constant(number, dtype_of(chosen)))
        names = _chosen(scope, is_this, results[number], names)
    for result, name in zip(op.results, names, strict=True):
        scope.set(result, name)


def _if(scope: Scope, op: Any, converters: Mapping[str, Converter]) -> None:
    first, second = _branches(scope, op, converters)
    names = _chosen(scope, scope.full(op.operands[0]), first, second)
    for result, name in zip(op.results, names, strict=True):
        scope.set(result, name)


def _branches(scope: Scope, op: Any, converters: Mapping[str, Converter]) -> list[list[str]]:
    """All branches are computed, as none has effects, and the core computes both sides of a choice anyway."""
    found = []
    for region in op.regions:
        inner = scope.inner()
        names = []
        for value, result in zip(convert_region(inner, region.blocks[0], converters), op.results, strict=True):
            inner.tensors[result] = inner.tensors[value]
            names.append(inner.full(result))
        found.append(names)
    return found


def _chosen(scope: Scope, condition: str, first: list[str], second: list[str]) -> list[str]:
    return [str(scope.graph.add("Where", condition, *pair)) for pair in zip(first, second, strict=True)]


def _tuple(_scope: Scope, _op: Any, _: Mapping[str, Converter]) -> None:
    """Its elements are taken from where it is made."""


def _element(scope: Scope, op: Any, _: Mapping[str, Converter]) -> None:
    made = op.operands[0].owner
    if getattr(made, "name", "") != "stablehlo.tuple":
        raise RefusedError("the tuple that it is taken from is no result of stablehlo.tuple")
    tensor = scope.tensors[made.operands[int(op.attributes["index"].value)]]
    scope.set(op.results[0], tensor.name, tensor.sizes)


CONVERTERS: dict[str, Converter] = {
    "func.call": _call,
    "stablehlo.case": _case,
    "stablehlo.composite": _call,
    "stablehlo.custom_call": _custom_call,
    "stablehlo.get_tuple_element": _element,
    "stablehlo.tuple": _tuple,
    "stablehlo.if": _if,
    "stablehlo.while": _while,
}
