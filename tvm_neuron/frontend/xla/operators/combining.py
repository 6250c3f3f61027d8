"""What a region combines two elements by, applied to tensors of any sizes: reductions and windows are made of it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm_neuron.frontend.refused import RefusedError
from tvm_neuron.frontend.xla.operators import elementwise, inverse_error, legalised
from tvm_neuron.frontend.xla.operators.shapes import sliced
from tvm_neuron.frontend.xla.region import Converter, convert_region
from tvm_neuron.frontend.xla.scope import Scope, Tensor

Combine = Callable[[Sequence[str], Sequence[str], Sequence[int]], list[str]]
"""From the tensors on the left and those on the right, all of the same sizes, which are given."""

_EACH_ALONE = {
    *(elementwise.CONVERTERS.keys() - {"stablehlo.bitcast_convert"}), *inverse_error.CONVERTERS,
    *legalised.CONVERTERS, "stablehlo.constant", "stablehlo.return",
}  # fmt: skip


def combiner(scope: Scope, region: Any, converters: Mapping[str, Converter]) -> Combine:
    """The region's computation, element by element.

    Raises:
        RefusedError: an operator of it does otherwise than compute each element from those in its place.
    """
    block = region.blocks[0]
    odd = [each.operation.name for each in block.operations if each.operation.name not in _EACH_ALONE]
    if odd:
        raise RefusedError(f"it combines by {odd[0]}, which is no operator of single elements")

    def combine(left: Sequence[str], right: Sequence[str], sizes: Sequence[int]) -> list[str]:
        inner = scope.inner()
        for argument, name in zip(block.arguments, [*left, *right], strict=True):
            inner.tensors[argument] = Tensor(name, tuple(sizes))
        found = [inner.tensors[value] for value in convert_region(inner, block, converters)]
        return [
            each.name if each.sizes == tuple(sizes) else scope.graph.add("Expand", each.name, scope.graph.ints(sizes))
            for each in found
        ]

    return combine


def folded(scope: Scope, combine: Combine, names: list[str], sizes: list[int], axis: int) -> list[str]:
    """All along an axis combined, which keeps one element: halves with each other, in as many steps as there are bits.

    What is on the left stays on the left, so it need not commute.
    """
    graph, length = scope.graph, sizes[axis]
    while length > 1:
        pairs, rest = length // 2, length % 2
        limits = [2 * pairs if each == axis else size for each, size in enumerate(sizes)]
        steps = [2 if each == axis else 1 for each in range(len(sizes))]
        starts = [[begin if each == axis else 0 for each in range(len(sizes))] for begin in (0, 1)]
        left, right = ([sliced(graph, name, begin, limits, steps) for name in names] for begin in starts)
        found = combine(left, right, [pairs if each == axis else size for each, size in enumerate(sizes)])
        if rest:
            at = [length - 1 if each == axis else 0 for each in range(len(sizes))]
            last = [sliced(graph, name, at, sizes) for name in names]
            found = [graph.add("Concat", *pair, axis=axis) for pair in zip(found, last, strict=True)]
        names, length = found, pairs + rest
        sizes = [length if each == axis else size for each, size in enumerate(sizes)]
    return names


def slid(
    scope: Scope, combine: Combine, names: list[str], sizes: list[int], axis: int, window: int, step: int
) -> tuple[list[str], list[int]]:
    """Each `window` elements along an axis that lie `step` apart, combined, and the sizes of what is left.

    Windows of twice as many elements are made of two of those, and the one that is asked for of some of these: in as
    many steps as the window has bits, twice.
    """
    reach = sizes[axis] - (window - 1) * step

    def shifted(tensors: list[str], by: int, length: int) -> list[str]:
        starts = [by if each == axis else 0 for each in range(len(sizes))]
        limits = [by + length if each == axis else size for each, size in enumerate(sizes)]
        return [sliced(scope.graph, name, starts, limits) for name in tensors]

    def sized(length: int) -> list[int]:
        return [length if each == axis else size for each, size in enumerate(sizes)]

    doubled, extent, length = names, 1, sizes[axis]
    found: list[str] = []
    covered = 0
    while True:
        if window & extent:
            part = shifted(doubled, covered * step, reach)
            found = combine(found, part, sized(reach)) if found else part
            covered += extent
        if 2 * extent > window:
            return found, sized(reach)
        length -= extent * step
        doubled = combine(shifted(doubled, 0, length), shifted(doubled, extent * step, length), sized(length))
        extent *= 2
