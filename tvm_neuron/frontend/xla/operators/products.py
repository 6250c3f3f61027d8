"""Sums of products: dot, dot_general, convolution."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from string import ascii_letters
from typing import Any

import numpy as np

from tvm_neuron.frontend.refused import RefusedError
from tvm_neuron.frontend.xla.operators.shapes import ints, padded, reversed_along
from tvm_neuron.frontend.xla.region import Converter
from tvm_neuron.frontend.xla.scope import Scope, dtype_of, shape_of


def numbers(op: Any, name: str, kind: str) -> Any:
    """An attribute of StableHLO's own kinds."""
    return getattr(import_module("jaxlib.mlir.dialects.stablehlo"), kind)(op.attributes[name])


def _dot(scope: Scope, op: Any, _: Mapping[str, Converter]) -> None:
    scope.set(op.results[0], scope.graph.add("MatMul", *_same_dtype(scope, op)))


def _dot_general(scope: Scope, op: Any, _: Mapping[str, Converter]) -> None:
    left, right = (shape_of(value) for value in op.operands)
    found = numbers(op, "dot_dimension_numbers", "DotDimensionNumbers")
    batch = [*found.lhs_batching_dimensions], [*found.rhs_batching_dimensions]
    summed = [*found.lhs_contracting_dimensions], [*found.rhs_contracting_dimensions]
    names = _same_dtype(scope, op)
    if not batch[0] and len(right) == 2 and [*summed[0]] == [len(left) - 1] and len(summed[1]) == 1:
        weights = names[1] if summed[1] == [0] else scope.transposed(names[1], [1, 0])
        scope.set(op.results[0], scope.graph.add("MatMul", names[0], weights))
        return
    letters = iter(ascii_letters)
    terms = [[""] * len(left), [""] * len(right)]
    for pairs in (batch, summed):
        for first, second in zip(*pairs, strict=True):
            terms[0][first] = terms[1][second] = next(letters)
    terms = [[letter or next(letters) for letter in term] for term in terms]
    shared = [terms[0][axis] for axis in batch[0]]
    gone = {terms[0][axis] for axis in summed[0]}
    kept = [letter for term in terms for letter in term if letter not in gone and letter not in shared]
    equation = f"{''.join(terms[0])},{''.join(terms[1])}->{''.join([*shared, *kept])}"
    scope.set(op.results[0], scope.graph.add("Einsum", *names, equation=equation))


def _same_dtype(scope: Scope, op: Any) -> list[str]:
    """The operands, if their dtype is the result's."""
    dtypes = [dtype_of(value) for value in (*op.operands, op.results[0])]
    if len(set(dtypes)) > 1:
        raise RefusedError(f"its operands and its result have several dtypes: {', '.join(map(str, dtypes))}")
    return [scope.full(value) for value in op.operands]


def _convolution(scope: Scope, op: Any, _: Mapping[str, Converter]) -> None:
    """By Conv, and by ConvTranspose where the input is spread."""
    places = numbers(op, "dimension_numbers", "ConvDimensionNumbers")
    count = len(places.input_spatial_dimensions)
    image, kernel = _same_dtype(scope, op)
    order = [places.input_batch_dimension, places.input_feature_dimension, *places.input_spatial_dimensions]
    image, shape = scope.transposed(image, order), [shape_of(op.operands[0])[axis] for axis in order]
    order = [
        places.kernel_output_feature_dimension,
        places.kernel_input_feature_dimension,
        *places.kernel_spatial_dimensions,
    ]
    kernel, window = scope.transposed(kernel, order), [shape_of(op.operands[1])[axis] for axis in order]
    if "window_reversal" in op.attributes:
        flags = np.asarray(op.attributes["window_reversal"]).ravel()
        kernel = reversed_along(scope, kernel, [2 + axis for axis in range(count) if flags[axis]])
    groups, of_batch = (int(op.attributes[f"{kind}_group_count"]) for kind in ("feature", "batch"))
    if of_batch > 1:
        image, shape = _batch_as_features(scope, image, shape, of_batch)
        groups = of_batch
    strides, spread, steps = (
        ints(op, key) if key in op.attributes else [1] * count
        for key in ("window_strides", "lhs_dilation", "rhs_dilation")
    )
    pads = [[0, 0]] * count
    if "padding" in op.attributes:
        pads = np.asarray(op.attributes["padding"]).reshape(count, 2).tolist()
    if max(spread) > 1 and max(strides) == 1:
        made = _transposed(scope, image, kernel, window, (pads, spread, steps), groups)
    else:
        made = _plain(scope, image, shape, kernel, (pads, spread, dtype_of(op.results[0])), strides, steps, groups)
    back = [places.output_batch_dimension, places.output_feature_dimension, *places.output_spatial_dimensions]
    scope.set(op.results[0], scope.transposed(made, [int(axis) for axis in np.argsort(back)]))


def _batch_as_features(scope: Scope, image: str, shape: list[int], groups: int) -> tuple[str, list[int]]:
    """Each group of images as channels of its own."""
    batch, channels, *rest = shape
    split = scope.reshaped(image, [groups, batch // groups, channels, *rest])
    moved = scope.transposed(split, [1, 0, 2, *range(3, 3 + len(rest))])
    shape = [batch // groups, groups * channels, *rest]
    return scope.reshaped(moved, shape), shape


def _plain(
    scope: Scope, image: str, shape: list[int], kernel: str, around: tuple[list[list[int]], list[int], np.dtype[Any]],
    strides: list[int], steps: list[int], groups: int,
) -> str:  # fmt: skip
    pads, spread, dtype = around
    if max(spread) > 1 or min(min(pair) for pair in pads) < 0:
        low, high = ([0, 0, *(pair[side] for pair in pads)] for side in (0, 1))
        zero = scope.graph.constant(0, dtype)
        image = padded(scope, image, tuple(shape), (low, high, [0, 0, *(gap - 1 for gap in spread)]), zero)
        pads = [[0, 0]] * len(pads)
    return str(scope.graph.add(
        "Conv", image, kernel, strides=strides, dilations=steps, group=groups,
        pads=[*(pair[0] for pair in pads), *(pair[1] for pair in pads)],
    ))  # fmt: skip


def _transposed(
    scope: Scope, image: str, kernel: str, window: Sequence[int], around: tuple[list[list[int]], list[int], list[int]],
    groups: int,
) -> str:  # fmt: skip
    """A convolution of stride 1 over a spread image: each of its elements adds a kernel to the result."""
    pads, spread, steps = around
    outputs, inputs, *taps = window
    split = scope.reshaped(kernel, [groups, outputs // groups, inputs, *taps])
    turned = scope.transposed(split, [0, 2, 1, *range(3, 3 + len(taps))])
    flipped = scope.reshaped(turned, [groups * inputs, outputs // groups, *taps])
    flipped = reversed_along(scope, flipped, [2 + axis for axis in range(len(taps))])
    cuts = [[(tap - 1) * step - pad for pad in pair] for tap, step, pair in zip(taps, steps, pads, strict=True)]
    made = scope.graph.add(
        "ConvTranspose", image, flipped, strides=spread, dilations=steps, group=groups,
        pads=[*(max(pair[0], 0) for pair in cuts), *(max(pair[1], 0) for pair in cuts)],
    )  # fmt: skip
    more = [[max(-pair[side], 0) for pair in cuts] for side in (0, 1)]
    if not any(more[0]) and not any(more[1]):
        return str(made)
    return str(scope.graph.add("Pad", made, scope.graph.ints([0, 0, *more[0], 0, 0, *more[1]])))


CONVERTERS: dict[str, Converter] = {
    "stablehlo.convolution": _convolution,
    "stablehlo.dot": _dot,
    "stablehlo.dot_general": _dot_general,
}
