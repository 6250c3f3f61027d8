"""Constants, and what only moves: broadcasts, reshapes, transposes, slices, pads, concatenations."""

import re
from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np

from tvm_neuron.frontend.graph import Graph
from tvm_neuron.frontend.xla.region import Converter
from tvm_neuron.frontend.xla.scope import Scope, dtype_of, shape_of


def ints(op: Any, name: str) -> list[int]:
    """A list of integers among the operator's attributes."""
    attribute = op.attributes[name]
    return [int(value) for value in np.asarray(attribute).ravel()]


def _constant(scope: Scope, op: Any, _: Mapping[str, Converter]) -> None:
    (result,) = op.results
    attribute, dtype = op.attributes["value"], dtype_of(result)
    if attribute.is_splat:
        text = attribute.get_splat_value()
        value = np.asarray(getattr(text, "value", text)).astype(dtype)
        sizes = (1,) * len(shape_of(result))
        scope.set(result, scope.graph.constant(value.reshape(sizes)), sizes)
        return
    array = _of_text(str(attribute)) if dtype == ml_dtypes.bfloat16 else np.array(attribute).astype(dtype)
    scope.set(result, scope.graph.constant(array.reshape(shape_of(result))))


def _of_text(text: str) -> Any:
    """bfloat16 from `dense<[1.5, 0x7FC0]>` or `dense<"0xC03F2040">`: jaxlib gives NumPy none."""
    packed = re.match(r'dense<"0x([0-9A-Fa-f]*)">', text)
    if packed:
        return np.frombuffer(bytes.fromhex(packed.group(1)), ml_dtypes.bfloat16)
    words = re.findall(r"0x[0-9A-Fa-f]+|[-+]?\d[\d.eE+-]*", text.rpartition("> :")[0])
    numbers = [
        np.uint16(int(word, 16)).view(ml_dtypes.bfloat16) if word.startswith("0x") else float(word) for word in words
    ]
    return np.array(numbers).astype(ml_dtypes.bfloat16)


def _iota(scope: Scope, op: Any, _: Mapping[str, Converter]) -> None:
    (result,) = op.results
    shape, axis = shape_of(result), int(op.attributes["iota_dimension"])
    sizes = tuple(size if number == axis else 1 for number, size in enumerate(shape))
    scope.set(result, scope.graph.constant(np.arange(shape[axis]).astype(dtype_of(result)).reshape(sizes)), sizes)


def _broadcast_in_dim(scope: Scope, op: Any, _: Mapping[str, Converter]) -> None:
    (value,), (result,) = op.operands, op.results
    source, places = scope.tensors[value], ints(op, "broadcast_dimensions")
    sizes = [1] * len(shape_of(result))
    for place, size in zip(places, source.sizes, strict=True):
        sizes[place] = size
    rising = places == sorted(places)
    name = source.name if rising else scope.transposed(source.name, [int(n) for n in np.argsort(places)])
    if tuple(sizes) != source.sizes or not rising:
        known = scope.graph.constants.get(name)
        name = scope.graph.constant(known.reshape(sizes)) if known is not None else scope.reshaped(name, sizes)
    scope.set(result, name, tuple(sizes))


def _broadcast(scope: Scope, op: Any, _: Mapping[str, Converter]) -> None:
    """With further dimensions before its own."""
    (value,), sizes = op.operands, ints(op, "broadcast_sizes")
    source = scope.tensors[value]
    loose = (*(1 for _ in sizes), *source.sizes)
    scope.set(op.results[0], scope.reshaped(source.name, loose), loose)


def _reshape(scope: Scope, op: Any, _: Mapping[str, Converter]) -> None:
    (value,), (result,) = op.operands, op.results
    source, shape = scope.tensors[value], shape_of(result)
    if all(size == 1 for size in source.sizes):  # one number is so in any shape
        scope.set(result, scope.reshaped(source.name, [1] * len(shape)), (1,) * len(shape))
        return
    scope.set(result, scope.reshaped(scope.full(value), shape))


def _transpose(scope: Scope, op: Any, _: Mapping[str, Converter]) -> None:
    (value,), order = op.operands, ints(op, "permutation")
    source = scope.tensors[value]
    scope.set(op.results[0], scope.transposed(source.name, order), tuple(source.sizes[place] for place in order))


def _slice(scope: Scope, op: Any, _: Mapping[str, Converter]) -> None:
    name = scope.full(op.operands[0])
    starts, limits, steps = (ints(op, key) for key in ("start_indices", "limit_indices", "strides"))
    scope.set(op.results[0], sliced(scope.graph, name, starts, limits, steps))


def sliced(graph: Graph, name: str, starts: list[int], limits: list[int], steps: list[int] | None = None) -> str:
    """From a start to a limit along each dimension."""
    axes = graph.ints(range(len(starts)))
    strides = graph.ints(steps or [1] * len(starts))
    return str(graph.add("Slice", name, graph.ints(starts), graph.ints(limits), axes, strides))


def _pad(scope: Scope, op: Any, _: Mapping[str, Converter]) -> None:
    value, fill = op.operands
    pads = ints(op, "edge_padding_low"), ints(op, "edge_padding_high"), ints(op, "interior_padding")
    name = padded(scope, scope.full(value), shape_of(value), pads, scope.full(fill))
    scope.set(op.results[0], name)


def padded(
    scope: Scope, name: str, shape: tuple[int, ...], pads: tuple[list[int], list[int], list[int]], fill: str
) -> str:
    """With elements before, after and between those that there are; negative ones take away."""
    graph = scope.graph
    low, high, inner = pads
    sizes = list(shape)
    for axis, gap in enumerate(inner):
        if gap and sizes[axis] > 1:
            name = _spread(scope, name, sizes, axis, gap, fill)
            sizes[axis] += gap * (sizes[axis] - 1)
    if any(min(pair) < 0 for pair in zip(low, high, strict=True)):
        starts = [max(-size, 0) for size in low]
        limits = [size - max(-cut, 0) for size, cut in zip(sizes, high, strict=True)]
        name = sliced(graph, name, starts, limits)
        low, high = [max(size, 0) for size in low], [max(size, 0) for size in high]
    if any(low) or any(high):
        name = str(graph.add("Pad", name, graph.ints([*low, *high]), fill))
    return name


def _spread(scope: Scope, name: str, sizes: list[int], axis: int, gap: int, fill: str) -> str:
    """With `gap` elements after each along an axis, but for the last."""
    graph = scope.graph
    split = [*sizes[: axis + 1], 1, *sizes[axis + 1 :]]
    after = [0] * len(split)
    after[axis + 1] = gap
    name = str(graph.add("Pad", scope.reshaped(name, split), graph.ints([0] * len(split) + after), fill))
    merged = list(sizes)
    merged[axis] *= 1 + gap
    name = scope.reshaped(name, merged)
    limits = list(merged)
    limits[axis] -= gap
    return sliced(graph, name, [0] * len(limits), limits)


def _concatenate(scope: Scope, op: Any, _: Mapping[str, Converter]) -> None:
    names = [scope.full(value) for value in op.operands]
    scope.set(op.results[0], scope.graph.add("Concat", *names, axis=int(op.attributes["dimension"])))


def _reverse(scope: Scope, op: Any, _: Mapping[str, Converter]) -> None:
    (value,), axes = op.operands, ints(op, "dimensions")
    scope.set(op.results[0], reversed_along(scope, scope.full(value), axes))


def reversed_along(scope: Scope, name: str, axes: list[int]) -> str:
    """Backwards along these axes."""
    if not axes:
        return name
    graph, back = scope.graph, [-1] * len(axes)
    least = graph.constant([np.iinfo(np.int64).min] * len(axes), np.int64)
    return str(graph.add("Slice", name, graph.ints(back), least, graph.ints(axes), graph.ints(back)))


CONVERTERS: dict[str, Converter] = {
    "chlo.constant": _constant,
    "stablehlo.broadcast": _broadcast,
    "stablehlo.broadcast_in_dim": _broadcast_in_dim,
    "stablehlo.concatenate": _concatenate,
    "stablehlo.constant": _constant,
    "stablehlo.iota": _iota,
    "stablehlo.pad": _pad,
    "stablehlo.reshape": _reshape,
    "stablehlo.reverse": _reverse,
    "stablehlo.slice": _slice,
    "stablehlo.transpose": _transpose,
}
