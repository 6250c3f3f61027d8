"""same_rows: whether kernels go over the same rows of a tensor, each with axes of its own."""

from collections.abc import Mapping, Sequence

from tvm_neuron.schedule.expr import Axis
from tvm_neuron.schedule.graph import linear_indices
from tvm_neuron.schedule.kernel import Kernel, Reduction
from tvm_neuron.schedule.linear import Linear


def read_maps(kernel: Kernel) -> Sequence[Linear]:
    """The maps of what a reduction reads."""
    assert isinstance(kernel.root, Reduction)
    return linear_indices(kernel.root.load.indices) or ()


def renaming(maps: Sequence[Linear], others: Sequence[Linear]) -> dict[Axis, Axis] | None:
    """By axis of some maps the one of others that goes over the same elements in the same way; None if any does not."""
    found: dict[Axis, Axis] = {}
    if len(maps) != len(others):
        return None
    for here, there in zip(map(_plain_terms, maps), map(_plain_terms, others), strict=True):
        if [here[0], *(step for step, _ in here[1])] != [there[0], *(step for step, _ in there[1])]:
            return None
        for (_, axis), (_, other) in zip(here[1], there[1], strict=True):
            if axis.extent != other.extent or found.setdefault(axis, other) is not other:
                return None
    return found if len(set(found.values())) == len(found) else None


def _plain_terms(part: Linear) -> tuple[int, list[tuple[int, Axis]]]:
    terms = [(step, axis) for axis, step in part.terms.items() if axis.extent > 1]
    return part.const, sorted(terms, key=lambda term: (term[0], term[1].extent))


def plain(maps: Sequence[Linear]) -> list[tuple[int, dict[Axis, int]]]:
    """Of each map where it begins, and by axis of several elements its step: alike where maps are."""
    return [(part.const, {axis: step for step, axis in _plain_terms(part)[1]}) for part in maps]


def renamed(maps: Sequence[Linear], by: Mapping[Axis, Axis]) -> list[tuple[int, dict[Axis, int]]] | None:
    """The same of maps whose axes are renamed; None if one has no other name."""
    if any(axis not in by for part in maps for _, axis in _plain_terms(part)[1]):
        return None
    return [(const, {by[axis]: step for axis, step in terms.items()}) for const, terms in plain(maps)]
