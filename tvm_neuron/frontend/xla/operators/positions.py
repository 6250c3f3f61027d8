"""Reads and writes at computed positions: gather, scatter, slices whose start is computed."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import helper

from tvm_neuron.frontend.refused import RefusedError
from tvm_neuron.frontend.xla.operators.products import numbers
from tvm_neuron.frontend.xla.operators.reductions import body_of
from tvm_neuron.frontend.xla.operators.shapes import ints, sliced
from tvm_neuron.frontend.xla.region import Converter
from tvm_neuron.frontend.xla.scope import Scope, shape_of

_INT64 = helper.np_dtype_to_tensor_dtype(np.dtype(np.int64))


def _start(scope: Scope, value: Any, most: int) -> str:
    """A start as int64 within the operand."""
    graph = scope.graph
    whole = graph.add("Cast", scope.full(value), to=_INT64)
    return str(graph.add("Min", graph.add("Max", whole, graph.constant(0, np.int64)), graph.constant(most, np.int64)))


def _dynamic_slice(scope: Scope, op: Any, _: Mapping[str, Converter]) -> None:
    value, *starts = op.operands
    graph, shape, sizes = scope.graph, shape_of(value), ints(op, "slice_sizes")
    name = scope.full(value)
    for axis, (start, extent, size) in enumerate(zip(starts, shape, sizes, strict=True)):
        if size == extent:
            continue
        place = _start(scope, start, extent - size)
        known = scope.known(start)
        if known is not None:
            begin = int(np.clip(int(known), 0, extent - size))
            limits = [*sizes[:axis], begin + size, *shape[axis + 1 :]]
            name = sliced(graph, name, [begin if each == axis else 0 for each in range(len(shape))], limits)
            continue
        first = graph.add("Reshape", place, graph.ints([1]))
        places = graph.add("Add", first, graph.constant(np.arange(size), np.int64))
        name = graph.add("Gather", name, places, axis=axis)
    scope.set(op.results[0], name)


def _dynamic_update_slice(scope: Scope, op: Any, _: Mapping[str, Converter]) -> None:
    """The operand where the update is not, and there the update, moved to where it begins."""
    value, update, *starts = op.operands
    graph, shape, sizes = scope.graph, shape_of(value), shape_of(update)
    if shape == sizes:
        scope.set(op.results[0], scope.full(update))
        return
    name, is_new = scope.full(update), ""
    for axis, (start, extent, size) in enumerate(zip(starts, shape, sizes, strict=True)):
        if size == extent:
            continue
        first = graph.add("Reshape", _start(scope, start, extent - size), graph.ints([1]))
        offsets = graph.add("Sub", graph.constant(np.arange(extent), np.int64), first)
        low, high = graph.constant(0, np.int64), graph.constant(size - 1, np.int64)
        within = graph.add("Min", graph.add("Max", offsets, low), high)
        name = graph.add("Gather", name, within, axis=axis)
        here = graph.add("Equal", within, offsets)
        here = scope.reshaped(here, [extent if each == axis else 1 for each in range(len(shape))])
        is_new = graph.add("And", is_new, here) if is_new else here
    scope.set(op.results[0], graph.add("Where", is_new, name, scope.full(value)))


class _Positions:
    """Which dimensions of an operand are addressed, and with what: the part that gather and scatter share.

    `batching` and `mapped` are the operand's dimensions that go with the positions' own and with their vectors.
    """

    def __init__(self, scope: Scope, operand: Any, positions: Any, found: Any, batches: tuple[list[int], list[int]],
                 mapped: list[int], sizes: list[int]) -> None:  # fmt: skip
        self.shape, self.scope, self.sizes = shape_of(operand), scope, sizes
        places = shape_of(positions)
        self.vector = int(found.index_vector_dim)
        self.batch = [size for axis, size in enumerate(places) if axis != self.vector]
        partial = [axis for axis, size in enumerate(sizes) if size < self.shape[axis]]
        self.addressed = sorted({*mapped, *batches[0], *partial})
        self.rest = [axis for axis in range(len(self.shape)) if axis not in self.addressed]
        self._starts = self._vectors(positions, len(places))
        self._mapped, self._batches = mapped, batches

    def _vectors(self, positions: Any, rank: int) -> str:
        """The positions with their vectors last."""
        name = self.scope.graph.add("Cast", self.scope.full(positions), to=_INT64)
        if self.vector == rank:
            return self.scope.reshaped(name, [*self.batch, 1])
        return self.scope.transposed(name, [*(axis for axis in range(rank) if axis != self.vector), self.vector])

    def indices(self, clamps: bool) -> str:
        """[batch..., sizes of what is addressed..., a position for each], as GatherND takes them."""
        graph = self.scope.graph
        window = [self.sizes[axis] for axis in self.addressed]
        whole = [*self.batch, *window, 1]
        columns = []
        for number, axis in enumerate(self.addressed):
            column = graph.constant(np.zeros([1] * len(whole)), np.int64)
            if axis in self._mapped:
                column = self._column(axis, len(window), clamps)
            if axis in self._batches[0]:
                own = self._batches[1][self._batches[0].index(axis)]
                own -= own > self.vector
                column = graph.add("Add", column, self._along(own, self.shape[axis], len(whole)))
            if self.sizes[axis] > 1:
                column = graph.add("Add", column, self._along(len(self.batch) + number, self.sizes[axis], len(whole)))
            columns.append(graph.add("Expand", column, graph.ints(whole)))
        return str(graph.add("Concat", *columns, axis=-1)) if len(columns) > 1 else columns[0]

    def _column(self, axis: int, window: int, clamps: bool) -> str:
        graph, place = self.scope.graph, self._mapped.index(axis)
        column = str(graph.add("Gather", self._starts, graph.ints([place]), axis=-1))
        column = self.scope.reshaped(column, [*self.batch, *[1] * window, 1])
        if clamps:
            most = graph.constant(self.shape[axis] - self.sizes[axis], np.int64)
            column = graph.add("Min", graph.add("Max", column, graph.constant(0, np.int64)), most)
        return column

    def _along(self, axis: int, extent: int, rank: int) -> str:
        sizes = [extent if each == axis else 1 for each in range(rank)]
        return self.scope.graph.constant(np.arange(extent).reshape(sizes), np.int64)

    @property
    def order(self) -> list[int]:
        """The operand's dimensions, those addressed first."""
        return [*self.addressed, *self.rest]

    def windows(self, offsets: list[int], dropped: list[int]) -> list[int]:
        """The dimensions of [batch..., addressed..., rest...] in the order of the whole result."""
        ranks = len(self.batch)
        places = {axis: ranks + number for number, axis in enumerate(self.order)}
        window = [places[axis] for axis in range(len(self.shape)) if axis not in dropped]
        total = ranks + len(window)
        batch, kept = iter(range(ranks)), iter(window)
        return [next(kept) if axis in offsets else next(batch) for axis in range(total)]


def _gather(scope: Scope, op: Any, _: Mapping[str, Converter]) -> None:
    value, positions = op.operands
    found = numbers(op, "dimension_numbers", "GatherDimensionNumbers")
    sizes, mapped = ints(op, "slice_sizes"), [*found.start_index_map]
    batches = [*found.operand_batching_dims], [*found.start_indices_batching_dims]
    where = _Positions(scope, value, positions, found, batches, mapped, sizes)
    graph = scope.graph
    dropped = [*found.collapsed_slice_dims, *batches[0]]
    if where.addressed == mapped and len(mapped) == 1 and sizes[mapped[0]] == 1 and not batches[0]:
        name = _gather_rows(scope, where, scope.full(value))
    else:
        name = graph.add("GatherND", scope.transposed(scope.full(value), where.order), where.indices(clamps=True))
    order = where.windows([*found.offset_dims], dropped)
    ranks = len(where.batch)
    sizes_now = [*where.batch, *(sizes[axis] for axis in where.order)]
    gone = {ranks + where.order.index(axis) for axis in dropped}
    kept = [axis for axis in range(len(sizes_now)) if axis not in gone]
    if gone:
        name = scope.reshaped(name, [sizes_now[axis] for axis in kept])
    scope.set(op.results[0], scope.transposed(name, [kept.index(axis) for axis in order]))


def _gather_rows(scope: Scope, where: _Positions, name: str) -> str:
    """Whole rows at one position each, as Gather has it: [batch..., 1, rest...]."""
    flat = scope.reshaped(where.indices(clamps=True), [*where.batch, 1])
    moved = scope.transposed(name, where.order)
    return str(scope.graph.add("Gather", moved, flat, axis=0))


_REDUCTIONS = {
    "stablehlo.add": "add",
    "stablehlo.multiply": "mul",
    "stablehlo.maximum": "max",
    "stablehlo.minimum": "min",
}


def _scatter(scope: Scope, op: Any, _: Mapping[str, Converter]) -> None:
    """By ScatterND; what is addressed outside of the operand goes to a row that is cut off, as XLA drops it."""
    if len(op.operands) != 3:
        raise RefusedError("it writes to several tensors at once")
    value, positions, updates = op.operands
    body = body_of(op)
    names = [each.name for each in body]
    if names and (len(names) > 1 or names[0] not in _REDUCTIONS):
        raise RefusedError(f"it combines by {', '.join(names)}")
    found = numbers(op, "scatter_dimension_numbers", "ScatterDimensionNumbers")
    batches = [*found.input_batching_dims], [*found.scatter_indices_batching_dims]
    inserted = [*found.inserted_window_dims, *batches[0]]
    mapped, shape = [*found.scattered_dims_to_operand_dims], shape_of(value)
    offsets = [*found.update_window_dims]
    windows = iter(offsets)
    sizes = [1 if axis in inserted else shape_of(updates)[next(windows)] for axis in range(len(shape))]
    where = _Positions(scope, value, positions, found, batches, mapped, sizes)
    graph = scope.graph
    order = where.windows(offsets, inserted)
    given = scope.transposed(scope.full(updates), [int(axis) for axis in np.argsort(order)])
    given = scope.reshaped(given, [*where.batch, *(sizes[axis] for axis in where.order)])
    indices = where.indices(clamps=False)
    moved = scope.transposed(scope.full(value), where.order)
    extents = [shape[axis] for axis in where.order]
    if not graph.is_known(indices):
        moved, indices = _with_a_row_for_others(scope, where, moved, indices)
    made = graph.add("ScatterND", moved, indices, given, reduction=_REDUCTIONS[names[0]] if names else None)
    if not graph.is_known(indices):
        made = sliced(graph, made, [0] * len(extents), extents)
    scope.set(op.results[0], scope.transposed(made, [int(axis) for axis in np.argsort(where.order)]))


def _with_a_row_for_others(scope: Scope, where: _Positions, moved: str, indices: str) -> tuple[str, str]:
    graph = scope.graph
    extents = [where.shape[axis] for axis in where.addressed]
    limits = graph.constant(np.array(extents), np.int64)
    zero, one = graph.constant(0, np.int64), graph.constant(1, np.int64)
    is_in = graph.add("And", graph.add("GreaterOrEqual", indices, zero), graph.add("Less", indices, limits))
    truths = graph.add("Cast", is_in, to=_INT64)
    is_whole = graph.add("Equal", graph.add("ReduceMin", truths, graph.ints([-1]), keepdims=1), one)
    beyond = graph.constant(np.array([extents[0], *[0] * (len(extents) - 1)]), np.int64)
    pads = [0] * (2 * len(where.shape))
    pads[len(where.shape)] = 1
    return str(graph.add("Pad", moved, graph.ints(pads))), str(graph.add("Where", is_whole, indices, beyond))


CONVERTERS: dict[str, Converter] = {
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.dynamic_update_slice": _dynamic_update_slice,
    "stablehlo.gather": _gather,
    "stablehlo.scatter": _scatter,
}
