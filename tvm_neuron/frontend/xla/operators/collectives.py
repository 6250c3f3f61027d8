"""Programs for several devices: the shards of shard_map and pmap, and the collectives inside of them.

They become nodes of a domain of their own, at which `frontend/xla/parts.py` cuts the graph.
"""

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np

from tvm_neuron.frontend.refused import RefusedError
from tvm_neuron.frontend.xla.meshes import layout_of, mesh_of, shardings_of
from tvm_neuron.frontend.xla.region import Converter, convert_region
from tvm_neuron.frontend.xla.scope import Cores, Scope, dtype_of, elements, shape_of
from tvm_neuron.spmd import Cut, Exchange, Join
from tvm_neuron.spmd.plan import Groups
from tvm_neuron.spmd.values import FUNCTIONS

DOMAIN = "tvm_neuron.spmd"
"""Of the nodes between the parts of a program."""


def _manual_computation(scope: Scope, op: Any, converters: Mapping[str, Converter]) -> None:
    """The body is what one device computes, of its parts of the operands."""
    if scope.cores is None or scope.cores.is_inside:
        raise RefusedError("it stands inside of another, or of a loop whose end the data decide")
    taken, given = (shardings_of(op, key) for key in ("in_shardings", "out_shardings"))
    axes = mesh_of(scope.functions, op, [*taken, *given])
    cores = scope.cores
    cores.enter(prod(axes.values()))
    inner, block = scope.inner(), op.regions[0].blocks[0]
    for value, argument, sharding in zip(op.operands, block.arguments, taken, strict=True):
        layout = layout_of(axes, sharding)
        if prod(layout.parts) == 1:
            inner.tensors[argument] = scope.tensors[value]
            continue
        source = scope.full(value)
        target = _node(scope, source, argument)
        cores.steps[target] = Cut(source, target, layout)
        inner.set(argument, target)
    returned = convert_region(inner, block, converters)
    for value, result, sharding in zip(returned, op.results, given, strict=True):
        source = inner.full(value)
        target = _node(scope, source, result)
        cores.steps[target] = Join(source, target, layout_of(axes, sharding), False, _size_bytes(value))
        scope.set(result, target)
    cores.is_inside = False


def _node(scope: Scope, source: str, result: Any) -> str:
    """A node between parts of the program."""
    assert scope.cores is not None
    target = str(scope.graph.add("Exchange", source, domain=DOMAIN))
    scope.cores.types[target] = shape_of(result), dtype_of(result)
    return target


def _size_bytes(value: Any) -> int:
    return elements(shape_of(value)) * dtype_of(value).itemsize


def _inside(scope: Scope) -> Cores:
    if scope.cores is None or not scope.cores.is_inside:
        raise RefusedError(
            "it is for several devices, and stands outside of jax.shard_map and jax.pmap, or in a loop whose end the "
            "data decide"
        )
    return scope.cores


def _groups(op: Any, cores: Cores) -> Groups:
    rows = np.array(op.attributes["replica_groups"])
    if sorted(rows.ravel().tolist()) != [*range(cores.count)]:
        raise RefusedError(
            f"its groups {rows.tolist()} do not hold each of the {cores.count} devices once, in groups of one size"
        )
    return tuple(tuple(row) for row in rows.tolist())


def _function(op: Any) -> str:
    """How two values are combined, by the region's only operator."""
    first, last = ([*op.regions[0].blocks[0].operations][at].operation for at in (0, -1))
    name = str(first.name).removeprefix("stablehlo.")
    if name not in FUNCTIONS or [*last.operands] != [*first.results]:
        raise RefusedError(f"it combines values by other than {', '.join(FUNCTIONS)}")
    is_bool = str(first.results[0].type.element_type) == "i1"
    return {"add": "or", "multiply": "and"}.get(name, name) if is_bool else name


def _exchange(scope: Scope, op: Any, groups: Groups, **attributes: Any) -> None:
    cores = _inside(scope)
    for value, result in zip(op.operands, op.results, strict=True):
        source = scope.full(value)
        target = _node(scope, source, result)
        operation, size = str(op.name).removeprefix("stablehlo."), _size_bytes(value)
        cores.steps[target] = Exchange(scope.graph.scope, operation, source, target, groups, size, **attributes)
        scope.set(result, target)


def _all_reduce(scope: Scope, op: Any, _: Mapping[str, Converter]) -> None:
    _exchange(scope, op, _groups(op, _inside(scope)), function=_function(op))


def _all_gather(scope: Scope, op: Any, _: Mapping[str, Converter]) -> None:
    _exchange(scope, op, _groups(op, _inside(scope)), axis=_int(op, "all_gather_dim"))


def _reduce_scatter(scope: Scope, op: Any, _: Mapping[str, Converter]) -> None:
    axis = _int(op, "scatter_dimension")
    _exchange(scope, op, _groups(op, _inside(scope)), function=_function(op), axis=axis)


def _all_to_all(scope: Scope, op: Any, _: Mapping[str, Converter]) -> None:
    axis, split = _int(op, "concat_dimension"), _int(op, "split_dimension")
    _exchange(scope, op, _groups(op, _inside(scope)), axis=axis, split=split)


def _collective_permute(scope: Scope, op: Any, _: Mapping[str, Converter]) -> None:
    count, pairs = _inside(scope).count, np.array(op.attributes["source_target_pairs"]).tolist()
    if any(len(set(ends)) < len(ends) or max(ends) >= count for ends in zip(*pairs, strict=True)):
        raise RefusedError(f"its pairs {pairs} name a device twice, or one beyond the {count} that there are")
    _exchange(scope, op, tuple(tuple(pair) for pair in pairs))


def _int(op: Any, key: str) -> int:
    return int(op.attributes[key].value)


def _partition_id(scope: Scope, op: Any, _: Mapping[str, Converter]) -> None:
    """A tensor that each core gets with its own number."""
    cores = _inside(scope)
    cores.core = scope.graph.reserve("partition_id_")  # arguments have no such underscore
    (result,) = op.results
    cores.types[cores.core] = shape_of(result), dtype_of(result)
    scope.set(result, cores.core)


def _same(scope: Scope, op: Any, _: Mapping[str, Converter]) -> None:
    """What it says of the value's place changes nothing in the value."""
    scope.tensors[op.results[0]] = scope.tensors[op.operands[0]]


CONVERTERS: dict[str, Callable[..., None]] = {
    "sdy.manual_computation": _manual_computation,
    "sdy.sharding_constraint": _same,
    "stablehlo.all_gather": _all_gather,
    "stablehlo.all_reduce": _all_reduce,
    "stablehlo.all_to_all": _all_to_all,
    "stablehlo.collective_permute": _collective_permute,
    "stablehlo.partition_id": _partition_id,
    "stablehlo.reduce_scatter": _reduce_scatter,
}
