"""What exchanges give: the tensors of all cores in, those of all cores out, as StableHLO defines its collectives."""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.spmd.plan import Exchange, Layout

Array = NDArray[Any]
Members = Sequence[Array]

FUNCTIONS: Mapping[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
"""By their name in StableHLO."""


def cut(whole: Array, layout: Layout) -> list[Array]:
    """Each core's part."""
    sizes = [size // count for size, count in zip(whole.shape, layout.parts, strict=True)]
    return [
        np.ascontiguousarray(whole[tuple(slice(at * size, (at + 1) * size) for at, size in zip(p, sizes, strict=True))])
        for p in layout.places
    ]


def join(parts: Members, layout: Layout) -> Array:
    """The whole tensor; of cores that have the same part, the first one's."""
    sizes = parts[0].shape
    whole = np.empty([size * count for size, count in zip(sizes, layout.parts, strict=True)], parts[0].dtype)
    for place, part in reversed([*zip(layout.places, parts, strict=True)]):
        whole[tuple(slice(at * size, (at + 1) * size) for at, size in zip(place, sizes, strict=True))] = part
    return whole


def exchanged(step: Exchange, given: Members) -> list[Array]:
    """What each core has after the exchange."""
    if step.operation == "collective_permute":
        found = [np.zeros_like(each) for each in given]  # of cores to which nobody sends
        for sender, receiver in step.groups:
            found[receiver] = given[sender]
        return found
    found = list(given)
    for group in step.groups:
        results = _OPERATIONS[step.operation](step, [given[core] for core in group])
        for core, result in zip(group, results, strict=True):
            found[core] = result
    return found


def _combined(step: Exchange, members: Members) -> Array:
    """Of narrow floats in float32, rounded once."""
    dtype = members[0].dtype
    is_narrow = dtype.itemsize < 4 and dtype.kind not in "biu"
    wide = [each.astype(np.float32) for each in members] if is_narrow else members
    return np.asarray(reduce(FUNCTIONS[step.function], wide)).astype(dtype)


def _all_reduce(step: Exchange, members: Members) -> list[Array]:
    return [_combined(step, members)] * len(members)


def _all_gather(step: Exchange, members: Members) -> list[Array]:
    return [np.concatenate(members, step.axis)] * len(members)


def _reduce_scatter(step: Exchange, members: Members) -> list[Array]:
    return [np.ascontiguousarray(part) for part in np.split(_combined(step, members), len(members), step.axis)]


def _all_to_all(step: Exchange, members: Members) -> list[Array]:
    parts = [np.split(each, len(members), step.split) for each in members]
    return [np.concatenate([row[number] for row in parts], step.axis) for number in range(len(members))]


_OPERATIONS: Mapping[str, Callable[[Exchange, Members], list[Array]]] = {
    "all_reduce": _all_reduce,
    "all_gather": _all_gather,
    "reduce_scatter": _reduce_scatter,
    "all_to_all": _all_to_all,
}
