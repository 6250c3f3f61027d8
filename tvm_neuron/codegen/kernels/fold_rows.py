"""fold_rows: kernels on tensors of few channels that have several rows on the partitions, see `row_folds`."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

import numpy as np

from tvm_neuron.codegen.kernels.bring_in import border, fill
from tvm_neuron.codegen.kernels.channel_values import (
    Order,
    channel_values,
    folded_value,
    reading_parts,
    repeating,
    sums_of_folded,
)
from tvm_neuron.codegen.kernels.folds import Fold, Room
from tvm_neuron.codegen.kernels.pack import packed_steps
from tvm_neuron.codegen.kernels.row_axes import COLUMNS, ROWS, is_fill, row_of, window_of
from tvm_neuron.codegen.kernels.row_folds import common_folds, possible_folds
from tvm_neuron.codegen.overlap.work import load_ps, work_of
from tvm_neuron.hw import Device
from tvm_neuron.schedule.expr import Axis, Expr, Index, Load, Num, rewrite
from tvm_neuron.schedule.graph import linear_indices
from tvm_neuron.schedule.kernel import Contraction, Kernel, Reduction
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import PARTITIONS

_ROWS_ALONE = Room(ROWS, PARTITIONS, 4, False)
_ROWS_OF_SQUARES = Room(ROWS, PARTITIONS // 2, 2, True)
_COLUMNS_OF_SQUARES = Room(COLUMNS, PARTITIONS, 2, True)
_NONE = Fold(ROWS, 1, 0, 0, PARTITIONS, ())
_LOAD_SHARE = 0.5  # of the time that further weights take: memory lets some come while engines work


@dataclass(frozen=True)
class _Folded:
    """Kernels, the folds they were made by, the partition dimension of each folded tensor, and how long they take."""

    folds: dict[Tensor, Fold]
    kernels: list[Kernel]
    partition_of: dict[Tensor, int]
    time_ps: int


def fold_rows(kernels: list[Kernel], partition_of: dict[Tensor, int], device: Device) -> list[Kernel]:
    """The kernels with rows or squares folded, of images of so many rows as take the engines least time.

    Rows of large images first, then of smaller ones too, for a fold of both is often better than of one; at last
    squares in place of the rows of images of one size after the other.
    """
    rows = possible_folds(kernels, partition_of, _ROWS_ALONE)
    squares = possible_folds(kernels, partition_of, _ROWS_OF_SQUARES)
    squares = {tensor: fold for tensor, fold in squares.items() if _squares(tensor, fold) >= device.matmul_min_cycles}
    best = _Folded({}, kernels, {}, _time_ps(kernels, device) if rows else 0)
    for size in _sizes(rows):
        folds = {tensor: fold for tensor, fold in rows.items() if fold.rows >= size}
        best = min(best, _folded_by(folds, kernels, partition_of, device), key=attrgetter("time_ps"))
    for size in _sizes(squares):
        folds = best.folds | {tensor: fold for tensor, fold in squares.items() if fold.rows == size}
        best = min(best, _folded_by(folds, kernels, partition_of, device), key=attrgetter("time_ps"))
    partition_of |= best.partition_of
    return best.kernels


def _sizes(folds: Mapping[Tensor, Fold]) -> list[int]:
    """Of images, the largest first."""
    return sorted({fold.rows for fold in folds.values()}, reverse=True)


def _squares(tensor: Tensor, fold: Fold) -> int:
    """How many of 2 x 2 pixels the images have: as many columns stream through the array then."""
    return tensor.shape[0] * fold.rows * tensor.shape[COLUMNS] // 4


def _folded_by(
    possible: dict[Tensor, Fold], kernels: list[Kernel], partition_of: Mapping[Tensor, int], device: Device
) -> _Folded:
    """The kernels on tensors folded so, and then along columns where partitions are kept free for these."""
    values = channel_values(kernels, partition_of)
    folds = common_folds(kernels, possible, values)
    found, folded = _with_folds(kernels, folds, values)
    halves = {folded[tensor] for tensor, fold in folds.items() if fold.is_of_squares}
    dims = dict.fromkeys(folded.values(), 1)
    if halves:
        values = channel_values(found, {**partition_of, **dims})
        columns = possible_folds(found, {**partition_of, **dims}, _COLUMNS_OF_SQUARES)
        folds = common_folds(found, {tensor: fold for tensor, fold in columns.items() if tensor in halves}, values)
        found, folded = _with_folds(found, folds, values)
        dims |= dict.fromkeys(folded.values(), 1)
    return _Folded(possible, found, dims, _time_ps(found, device))


def _with_folds(
    kernels: list[Kernel], folds: Mapping[Tensor, Fold], values: Container[Tensor]
) -> tuple[list[Kernel], dict[Tensor, Tensor]]:
    """The kernels on folded tensors, and which of these takes the place of each."""
    folded = {tensor: _folded(tensor, fold) for tensor, fold in folds.items()}
    orders = _orders(kernels, folds, values)
    folded |= {tensor: folded_value(tensor, order) for tensor, order in orders.items()}
    found: list[Kernel] = []
    filled: set[Tensor] = set()
    for kernel in kernels:
        if kernel.out in folds and is_fill(kernel):
            if kernel.out not in filled:
                filled.add(kernel.out)
                found += _fills(kernel, folds[kernel.out], folded[kernel.out], _interior(kernel.out, kernels))
        else:
            found.append(_on_values(rewrite_folded(kernel, folds, folded), orders, folded))
    return found, folded


def _orders(kernels: Sequence[Kernel], folds: Mapping[Tensor, Fold], values: Container[Tensor]) -> dict[Tensor, Order]:
    """The values of each channel that are there as often as the folded images beside them have rows in one."""
    found: dict[Tensor, Order] = {}
    for kernel in kernels:
        if isinstance(kernel.root, Reduction) and kernel.root.load.tensor in folds:
            found[kernel.out] = folds[kernel.root.load.tensor].order
        elif kernel.out in folds:
            loads = [load.tensor for load in kernel.operand_loads() if load.tensor in values]
            found |= dict.fromkeys(loads, folds[kernel.out].order)
    return found


def _on_values(kernel: Kernel, orders: Mapping[Tensor, Order], folded: Mapping[Tensor, Tensor]) -> Kernel:
    """A contraction that adds up parts of sums, or computes factors more than once."""
    root = kernel.root
    if isinstance(root, Contraction) and root.data in orders:
        kernel = reading_parts(kernel, orders[root.data], folded[root.data])
    if isinstance(root, Contraction) and kernel.out in orders:
        kernel = repeating(kernel, orders[kernel.out], folded[kernel.out])
    return kernel


def rewrite_folded(kernel: Kernel, folds: Mapping[Tensor, Fold], folded: Mapping[Tensor, Tensor]) -> Kernel:
    """The kernel on the folded tensors that take the place of others."""
    if isinstance(kernel.root, Reduction) and kernel.root.load.tensor in folds:
        image = kernel.root.load.tensor
        return sums_of_folded(kernel, folded[image], folds[image], folded[kernel.out])
    if not any(tensor in folds for tensor in kernel.tensors):
        return kernel
    return _Rewrite(kernel, folds, folded).kernel()


def _time_ps(kernels: Sequence[Kernel], device: Device) -> int:
    """Of all kernels, each as long as the engine that it keeps longest; and what loads weights that repeat."""
    busy = 0
    for kernel in kernels:
        work = work_of(kernel, device)
        work["pe"] //= packed_steps(kernel, device)
        busy += max(work.values())
    repeated = (k for k in kernels if isinstance(k.root, Contraction) and k.root.repeats > 1 and k.root.has_zeros)
    return busy + int(_LOAD_SHARE * sum(load_ps(kernel, device) for kernel in repeated))


def _folded(tensor: Tensor, fold: Fold) -> Tensor:
    shape = list(tensor.shape)
    below = shape[fold.along] - fold.first - fold.rows
    shape[1] *= fold.by
    shape[fold.along] = -(-fold.first // fold.by) + fold.rows // fold.by + -(-below // fold.by)
    return Tensor(f"{tensor.name}.folded", tuple(shape), tensor.dtype)


def _interior(tensor: Tensor, kernels: Sequence[Kernel]) -> Kernel:
    """A kernel that writes what is not padding."""
    return next(kernel for kernel in kernels if kernel.out is tensor and not is_fill(kernel))


def _fills(kernel: Kernel, fold: Fold, folded: Tensor, interior: Kernel) -> list[Kernel]:
    """The padding around the rows and columns that others write."""
    spans = [part.span for part in interior.out_maps]
    top = fold.top
    inside = [(low, high + 1) for low, high in spans]
    inside[1], inside[fold.along] = (0, folded.shape[1]), (top, top + fold.rows // fold.by)
    return [fill(folded, kernel, 1, box, kernel.expr) for box in border(folded.shape, 1, inside)]


class _Rewrite:
    """A kernel on folded tensors."""

    def __init__(self, kernel: Kernel, folds: Mapping[Tensor, Fold], folded: Mapping[Tensor, Tensor]) -> None:
        self.old, self.folds, self.folded = kernel, folds, folded
        self.by = folds.get(kernel.out, _NONE).by
        self.along = next(iter(folds.values())).along
        self.row = row_of(kernel, self.along) if self.by > 1 else None
        self.new_row = Axis(self.row.name, self.row.extent // self.by) if self.row else None
        self.channel = Axis(kernel.channel.name, kernel.channel.extent * self.by) if self.row else kernel.channel
        low = kernel.out_maps[1].const if self.row else 0
        channels = (0, kernel.channel.extent)
        self.pieces = folds[kernel.out].inside(low, low + channels[1]) if self.row else (channels,)
        self.vectors: dict[Tensor, Tensor] = {}

    def kernel(self) -> Kernel:
        """It."""
        old = self.old
        changed = replace(
            old,
            out=self.folded.get(old.out, old.out),
            out_maps=self._place(old.out, old.out_maps),
            channel=self.channel,
            free=tuple(self.new_row if axis is self.row and self.new_row else axis for axis in old.free),
            expr=rewrite(old.expr, self._leaf),
        )
        return replace(changed, root=self._root(old.root)) if isinstance(old.root, Contraction) else changed

    def _place(self, tensor: Tensor, maps: Sequence[Linear]) -> tuple[Linear, ...]:
        """Where the kernel's channels and rows lie in a tensor that is folded as the kernel's output."""
        if self.row is None or self.new_row is None:
            return tuple(maps)
        top = self.folds[tensor].top
        found = [maps[0], Linear(maps[1].const * self.by, {self.channel: 1}), *maps[2:]]
        found[self.along] = Linear(top, {self.new_row: 1})
        return tuple(found)

    def _leaf(self, part: Num | Index | Load) -> Expr:
        if not isinstance(part, Load) or self.row is None:
            return part
        if part.tensor in self.folded and part.tensor not in self.folds:
            first, _, *others = part.indices
            return Load(self.folded[part.tensor], (first, Index(self.channel), *others))
        if part.tensor in self.folded:
            place = self._place(part.tensor, linear_indices(part.indices) or ())
            return Load(self.folded[part.tensor], tuple(linear.expr() for linear in place))
        if part.indices != (Index(self.old.channel),):
            return part
        if part.tensor not in self.vectors:
            assert part.tensor.value is not None
            value = np.concatenate([np.tile(part.tensor.value[start:end], self.by) for start, end in self.pieces])
            self.vectors[part.tensor] = replace(part.tensor, shape=value.shape, value=value)
        return Load(self.vectors[part.tensor], (Index(self.channel),))

    def _root(self, root: Contraction) -> Contraction:
        """Output row b*y + q sums rows that lie in folded row s*y + d as row r of it, for some pairs of d and r."""
        fold, window = self.folds.get(root.data, _NONE), window_of(root, self.along)
        if window is None:
            return root
        extent = window.step.extent if window.step else 1
        first = window.const - fold.first
        reads = {
            (q, k): divmod(first + window.stride * q + window.dilation * k, fold.by)
            for q in range(self.by)
            for k in range(extent)
        }
        low, high = min(d for d, _ in reads.values()), max(d for d, _ in reads.values())
        at = 1 + root.steps.index(window.step) if window.step else 1  # of the step along rows in the weights
        old = root.weights if window.step else np.expand_dims(root.weights, at)
        pairs = np.moveaxis(old, at, 0)  # by step: [K, *others, M]
        depth, columns = old.shape[0], old.shape[-1]
        weights = np.zeros((high - low + 1, depth * fold.by, *pairs.shape[2:-1], columns * self.by), old.dtype)
        for (q, k), (d, r) in reads.items():
            for start, end in fold.pieces or ((0, depth),):
                at_row = start * fold.by + r * (end - start)
                into = weights[d - low, at_row : at_row + end - start]
                for left, right in self.pieces:
                    at_column = left * self.by + q * (right - left)
                    into[..., at_column : at_column + right - left] = pairs[k, start:end, ..., left:right]
        step = Axis(window.step.name if window.step else "row", high - low + 1, True)
        row = self.new_row if self.new_row is not None else window.row
        terms = {row: window.stride * self.by // fold.by}
        terms |= {step: 1} if step.extent > 1 else {}
        top = fold.top
        maps = [root.maps[0], Linear(0), *root.maps[2:]]
        maps[self.along] = Linear(top + low, terms)
        steps = [axis for axis in root.steps if axis is not window.step]
        if step.extent > 1:
            steps.insert(at - 1, step)
        weights = np.moveaxis(weights, 0, at) if step.extent > 1 else weights[0]
        return replace(
            root, data=self.folded.get(root.data, root.data), maps=tuple(maps), steps=tuple(steps), weights=weights,
            has_zeros=True, repeats=root.repeats * self.by,
        )  # fmt: skip
