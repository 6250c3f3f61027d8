"""Windows that slide: pooling, cumulative sums, and the gradient of pooling."""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np

from tvm_neuron.frontend.refused import RefusedError
from tvm_neuron.frontend.xla.operators.combining import combiner, slid
from tvm_neuron.frontend.xla.operators.elementwise import compared
from tvm_neuron.frontend.xla.operators.reductions import body_of, is_plain, neutral
from tvm_neuron.frontend.xla.operators.shapes import ints, padded, sliced
from tvm_neuron.frontend.xla.region import Converter
from tvm_neuron.frontend.xla.scope import Scope, dtype_of, elements, shape_of

_NEUTRAL = ("stablehlo.add", "stablehlo.multiply", "stablehlo.maximum", "stablehlo.minimum")


def _reduce_window(scope: Scope, op: Any, converters: Mapping[str, Converter]) -> None:
    """By ONNX's cumulative sums and pooling where these do it, else step by step."""
    body = body_of(op)
    value, result, shape = op.operands[0], op.results[0], shape_of(op.operands[0])
    name = body[0].name if len(op.results) == 1 and is_plain(op, body) else ""
    dtype = dtype_of(value)
    if name in _NEUTRAL and dtype != np.bool_:
        known = scope.known(op.operands[1])
        if known is None or not np.all(known == neutral(name, dtype)):
            raise RefusedError("it starts from another value than the one that changes nothing")
    window, strides, steps, spread, pads = _window(op, len(shape))
    if max(spread, default=1) > 1:
        raise RefusedError("its operand is spread (base_dilations)")
    is_whole = [size == extent for size, extent in zip(window, shape, strict=True)]
    moving = [axis for axis in range(len(shape)) if window[axis] > 1 or strides[axis] > 1 or any(pads[axis])]
    if name == "stablehlo.add" and len(moving) == 1 and is_whole[moving[0]] and max(strides) == max(steps) == 1:
        (axis,) = moving
        rest = [window[axis] - 1, 0]
        if sorted(pads[axis], reverse=True) == rest:
            reverse = int(pads[axis][0] == 0)
            scope.set(result, scope.graph.add("CumSum", scope.full(value), scope.graph.ints([axis]), reverse=reverse))
            return
    if name in ("stablehlo.add", "stablehlo.maximum") and dtype.kind == "f" and 0 < len(moving) <= 2:
        scope.set(result, _pooled(scope, op, name, moving))
        return
    _in_steps(scope, op, converters)


def _window(op: Any, rank: int) -> tuple[list[int], list[int], list[int], list[int], list[list[int]]]:
    """Sizes, strides, steps within, spread of the operand, and padding of each dimension."""
    sizes, strides, steps, spread = (
        ints(op, key) if key in op.attributes else [1] * rank
        for key in ("window_dimensions", "window_strides", "window_dilations", "base_dilations")
    )
    if "padding" not in op.attributes:
        return sizes, strides, steps, spread, [[0, 0]] * rank
    return sizes, strides, steps, spread, np.asarray(op.attributes["padding"]).reshape(rank, 2).tolist()


def _pooled(scope: Scope, op: Any, name: str, moving: list[int]) -> str:
    """By a pooling operator, over the dimensions that move as the last ones."""
    shape, graph = shape_of(op.operands[0]), scope.graph
    window, strides, steps, _, pads = _window(op, len(shape))
    still = [axis for axis in range(len(shape)) if axis not in moving]
    order = [*still, *moving]
    channels = [shape[axis] for axis in still]
    sides = [shape[axis] for axis in moving]
    image = scope.transposed(scope.full(op.operands[0]), order)
    image = scope.reshaped(image, [1, elements(channels), *sides])
    given: dict[str, Any] = {
        "kernel_shape": [window[axis] for axis in moving],
        "strides": [strides[axis] for axis in moving],
        "dilations": [steps[axis] for axis in moving],
        "pads": [*(pads[axis][0] for axis in moving), *(pads[axis][1] for axis in moving)],
    }
    if name == "stablehlo.maximum":
        made = graph.add("MaxPool", image, **given)
    else:
        made = graph.add("AveragePool", image, count_include_pad=1, **given)
        count = elements([window[axis] for axis in moving])
        made = graph.add("Mul", made, graph.constant(count, dtype_of(op.results[0])))
    sizes = [shape_of(op.results[0])[axis] for axis in order]
    return scope.transposed(scope.reshaped(made, sizes), [int(axis) for axis in np.argsort(order)])


def _in_steps(scope: Scope, op: Any, converters: Mapping[str, Converter]) -> None:
    """By any computation, of one tensor or of several together: padded with the starts, one dimension at a time."""
    count, shape = len(op.results), shape_of(op.operands[0])
    window, strides, steps, _, pads = _window(op, len(shape))
    low, high = ([pair[side] for pair in pads] for side in (0, 1))
    combine, sizes = combiner(scope, op.regions[0], converters), [*shape]
    names = [
        padded(scope, scope.full(value), shape, (low, high, [0] * len(shape)), scope.full(start))
        for value, start in zip(op.operands[:count], op.operands[count:], strict=True)
    ]
    sizes = [extent + sum(pair) for extent, pair in zip(shape, pads, strict=True)]
    for axis, extent in enumerate(window):
        if extent > 1:
            names, sizes = slid(scope, combine, names, sizes, axis, extent, steps[axis])
    limits = [(extent - 1) * stride + 1 for extent, stride in zip(shape_of(op.results[0]), strides, strict=True)]
    for result, name in zip(op.results, names, strict=True):
        scope.set(result, sliced(scope.graph, name, [0] * len(shape), limits, strides))


def _taps(
    scope: Scope, image: str, window: list[int], steps: list[int], strides: list[int], results: tuple[int, ...]
) -> Iterator[tuple[list[int], str]]:
    """Where each tap of the window begins, and what it sees."""
    for tap in product(*map(range, window)):
        starts = [place * step for place, step in zip(tap, steps, strict=True)]
        lengths = [(count - 1) * stride + 1 for count, stride in zip(results, strides, strict=True)]
        limits = [start + length for start, length in zip(starts, lengths, strict=True)]
        yield starts, sliced(scope.graph, image, starts, limits, strides)


def _select_and_scatter(scope: Scope, op: Any, _: Mapping[str, Converter]) -> None:
    """The first extreme of each window gets what its result got; what several windows give is added up."""
    value, source, start = op.operands
    selects, scatters = body_of(op, 0), body_of(op, 1)
    known = scope.known(start)
    if (
        [each.name for each in selects] != ["stablehlo.compare"] or compared(selects[0]) not in ("GE", "LE")
        or [each.name for each in scatters] != ["stablehlo.add"] or known is None or np.any(known)
    ):  # fmt: skip
        raise RefusedError("it does otherwise than the gradient of pooling: selects by ge or le, adds up from 0")
    graph, shape, dtype = scope.graph, shape_of(value), dtype_of(value)
    is_maximum = compared(selects[0]) == "GE"
    window, strides, steps, _spread, pads = _window(op, len(shape))
    low, high = ([pair[side] for pair in pads] for side in (0, 1))
    fill = graph.constant(neutral(f"stablehlo.{'maximum' if is_maximum else 'minimum'}", dtype), dtype)
    image = padded(scope, scope.full(value), shape, (low, high, [0] * len(shape)), fill)
    sizes = [extent + before + after for extent, before, after in zip(shape, low, high, strict=True)]
    results = shape_of(source)
    seen = list(_taps(scope, image, window, steps, strides, results))
    best, chosen = seen[0][1], graph.constant(np.zeros([1] * len(shape)), np.float32)
    for number, (_start, each) in enumerate(seen[1:], 1):
        is_better = graph.add("Greater" if is_maximum else "Less", each, best)
        best = graph.add("Where", is_better, each, best)
        chosen = graph.add("Where", is_better, graph.constant(number, np.float32), chosen)
    zero, total = graph.constant(0, dtype), ""
    for number, (starts, _each) in enumerate(seen):
        is_here = graph.add("Equal", chosen, graph.constant(number, np.float32))
        given = graph.add("Where", is_here, scope.full(source), zero)
        ends = [
            size - begin - (count - 1) * stride - 1
            for size, begin, count, stride in zip(sizes, starts, results, strides, strict=True)
        ]
        spread = padded(scope, given, results, (starts, ends, [stride - 1 for stride in strides]), zero)
        total = graph.add("Add", total, spread) if total else spread
    limits = [before + extent for before, extent in zip(low, shape, strict=True)]
    scope.set(op.results[0], sliced(graph, total, low, limits))


CONVERTERS: dict[str, Converter] = {
    "stablehlo.reduce_window": _reduce_window,
    "stablehlo.select_and_scatter": _select_and_scatter,
}
