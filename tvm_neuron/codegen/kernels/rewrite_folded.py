"""rewrite_folded: a kernel as it works on tensors with several rows or columns as one."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.codegen.kernels.bring_in import fill
from tvm_neuron.codegen.kernels.channel_values import sums_of_folded
from tvm_neuron.codegen.kernels.folds import Fold
from tvm_neuron.codegen.kernels.row_axes import ROWS, Interlaced, Window, row_of, stored_row, window_of
from tvm_neuron.schedule.expr import Axis, Expr, Index, Load, Num, rewrite
from tvm_neuron.schedule.graph import linear_indices
from tvm_neuron.schedule.kernel import Contraction, Kernel, Reduction
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import PARTITIONS

_NONE = Fold(ROWS, 1, 0, 0, PARTITIONS, ())


def rewrite_folded(kernel: Kernel, folds: Mapping[Tensor, Fold], folded: Mapping[Tensor, Tensor]) -> Kernel:
    """The kernel on the folded tensors that take the place of others."""
    if isinstance(kernel.root, Reduction) and kernel.root.load.tensor in folds:
        image = kernel.root.load.tensor
        return sums_of_folded(kernel, folded[image], folds[image], folded[kernel.out])
    if not any(tensor in folds for tensor in kernel.tensors):
        return kernel
    return _Rewrite(kernel, folds, folded).kernel()


def stores_of_folded(kernel: Kernel, fold: Fold, folded: Tensor) -> list[Kernel]:
    """The transfers of an image from where its rows lie side by side: of every so manieth row each."""
    load = kernel.expr
    assert isinstance(load, Load)
    row, maps = stored_row(kernel, load.tensor, fold.along), list(linear_indices(load.indices) or ())
    assert row is not None
    found = []
    for q in range(fold.by):
        part = Axis(row.name, row.extent // fold.by)
        maps[1] = Linear(q * kernel.channel.extent, {kernel.channel: 1})
        maps[fold.along] = Linear(fold.top, {part: 1})
        out_maps = tuple(m.replaced(row, Linear(q, {part: fold.by})) for m in kernel.out_maps)
        free = tuple(part if axis is row else axis for axis in kernel.free)
        read = Load(folded, tuple(m.index() for m in maps))
        found.append(replace(kernel, out_maps=out_maps, free=free, expr=read, by_dma=True))
    return found


def fills_of_folded(kernel: Kernel, fold: Fold, folded: Tensor) -> list[Kernel]:
    """The kernels that fill, in the folded tensor, what the kernel fills of the rows that were folded."""
    spans = [(low, high + 1) for low, high in (part.span for part in kernel.out_maps)]
    (low, high), (first, last) = spans[fold.along], spans[1]
    found: list[tuple[tuple[int, int], tuple[int, int]]] = []  # channels, rows; side by side where they may be
    for start, end in fold.pieces:
        inside = max(start, first), min(end, last)
        for q in range(fold.by):
            rows = -((fold.first + q - low) // fold.by), -((fold.first + q - high) // fold.by)
            at = start * fold.by + q * (end - start) - start
            if inside[0] >= inside[1] or rows[0] >= rows[1]:
                continue
            channels = at + inside[0], at + inside[1]
            if found and found[-1][0][1] == channels[0] and found[-1][1] == rows:
                channels = found.pop()[0][0], channels[1]
            found.append((channels, rows))
    boxes = []
    for channels, rows in found:
        spans[1], spans[fold.along] = channels, (rows[0] + fold.top, rows[1] + fold.top)
        boxes.append(list(spans))
    return [fill(folded, kernel, 1, box, kernel.expr) for box in boxes]


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
        phases = [_steps_first(each, self.along) for each in _each(root)]
        reads = {
            (q, k): divmod(own.const - fold.first + own.stride * (q // window.per) + own.dilation * k, fold.by)
            for q in range(self.by)
            for own, pairs in [phases[q % window.per]]
            for k in range(len(pairs))
        }
        low, high = min(d for d, _ in reads.values()), max(d for d, _ in reads.values())
        _, depth, *others, columns = phases[0][1].shape
        weights = np.zeros((high - low + 1, depth * fold.by, *others, columns * self.by), root.weights.dtype)
        for (q, k), (d, r) in reads.items():
            for start, end in fold.pieces or ((0, depth),):
                at_row = start * fold.by + r * (end - start)
                into = weights[d - low, at_row : at_row + end - start]
                for left, right in self.pieces:
                    at_column = left * self.by + q * (right - left)
                    part = phases[q % window.per][1][k, start:end, ..., left:right]
                    into[..., at_column : at_column + right - left] = part
        step = Axis(window.step.name if window.step else "row", high - low + 1, True)
        row = self.new_row if self.new_row is not None else window.row
        terms = {row: window.stride * self.by // (fold.by * window.per)}
        terms |= {step: 1} if step.extent > 1 else {}
        maps = [root.maps[0], Linear(0), *root.maps[2:]]
        maps[self.along] = Linear(fold.top + low, terms)
        steps = [axis for axis in root.steps if axis is not window.step]
        at = root.steps.index(window.step) if window.step else 0  # of the step along rows among all
        if step.extent > 1:
            steps.insert(at, step)
        weights = np.moveaxis(weights, 0, 1 + at) if step.extent > 1 else weights[0]
        return replace(
            _each(root)[0], data=self.folded.get(root.data, root.data),
            maps=tuple(maps), steps=tuple(steps), weights=weights, has_zeros=True,
            repeats=root.repeats * self.by // window.per,
        )  # fmt: skip


def _each(root: Contraction) -> list[Contraction]:
    """It, or those of which each computes its own rows."""
    if not isinstance(root, Interlaced):
        return [root]
    return [kernel.root for kernel in root.phases if isinstance(kernel.root, Contraction)]


def _steps_first(root: Contraction, along: int) -> tuple[Window, NDArray[Any]]:
    """How it reads rows, and its weights as [steps along rows, K, other steps, M]."""
    window = window_of(root, along)
    assert window is not None
    at = 1 + root.steps.index(window.step) if window.step else 0
    return window, np.moveaxis(root.weights, at, 0) if window.step else root.weights[None]
