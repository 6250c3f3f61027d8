"""Window: a convolution on data with moved copies of themselves beside them on the partitions; see `pack_columns`."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tvm_neuron.codegen.kernels.bring_in import fill
from tvm_neuron.codegen.kernels.row_axes import is_fill
from tvm_neuron.schedule.expr import Axis, Load, Num
from tvm_neuron.schedule.kernel import Contraction, Kernel
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor


@dataclass(frozen=True)
class Window:
    """`copies` of the data, each moved by `steps` columns (or rows) of the window, which has so many left then."""

    root: Contraction
    part: int  # the dimension on the partitions
    dim: int  # that of columns or of rows
    axis: Axis  # the window's axis along it
    rows: int  # partitions from one copy to the next
    copies: int
    steps: int

    @property
    def shift(self) -> int:
        """Elements (or rows) by which each copy is moved."""
        return self.steps * self.root.maps[self.dim].terms[self.axis]

    @property
    def is_of_rows(self) -> bool:
        """Whether copies are moved down, not along a row."""
        return self.dim < len(self.root.maps) - 1

    @property
    def read(self) -> int:
        """Elements of a row that the steps of each copy reach; of rows, all."""
        if self.is_of_rows:
            return self.root.data.shape[self.dim]
        along = self.root.maps[-1]
        return along.span[1] + 1 - along.terms[self.axis] * (self.axis.extent - self.steps)

    @property
    def copied(self) -> tuple[int, ...]:
        """Equal where the same copies serve."""
        return self.dim, self.rows, self.copies, self.shift, self.read


def wide_data(window: Window) -> Tensor:
    """The data with its copies."""
    shape = list(window.root.data.shape)
    shape[window.part] = window.rows * window.copies
    return Tensor(f"{window.root.data.name}.columns", tuple(shape), window.root.data.dtype)


def inside(data: Tensor, kernels: Sequence[Kernel]) -> tuple[int, int] | None:
    """The columns of the data that hold more than zeros around them, if any do: windows may miss the image."""
    writers = [k for k in kernels if k.out is data and not (is_fill(k) and k.expr == Num(0.0))]
    spans = [kernel.out_maps[-1].span for kernel in writers]
    return (min(low for low, _ in spans), max(high for _, high in spans) + 1) if spans else None


def copies_of(window: Window, data: Tensor, like: Kernel, within: tuple[int, int]) -> list[Kernel]:
    """Each from the data themselves, and zeros where these end: weights of zero meet some, but NaN stays.

    Copies of rows take the columns `within` alone, in tiles as long as those in which they were written.
    """
    part, width = window.part, data.shape[-1]
    fills, found = [], []
    for number in range(1, window.copies):
        by, first = window.shift * number, window.rows * number
        into = [(0, extent) for extent in data.shape]
        into[part] = (first, first + window.rows)
        moved = [0] * len(into)
        moved[part], moved[window.dim] = -first, -by if window.is_of_rows else by
        if window.is_of_rows:
            zeros = [(window.dim, (0, by)), (-1, (0, within[0])), (-1, (within[1], width))]
            into[window.dim], into[-1] = (by, data.shape[window.dim]), within
        else:
            into[-1] = (0, min(window.read, width - by))
            zeros = [(-1, (into[-1][1], width))]
        found.append(_copy(data, like, part, into, moved))
        for dim, (low, high) in zeros:
            if low < high:
                box = [(0, extent) for extent in data.shape]
                box[part], box[dim] = into[part], (low, high)
                fills.append(fill(data, like, part, box, Num(0.0)))
    return fills + found


def _copy(data: Tensor, like: Kernel, part: int, into: Sequence[tuple[int, int]], moved: Sequence[int]) -> Kernel:
    """A box of the data from where these have been moved."""
    axes = [Axis(f"d{d}", high - low) for d, (low, high) in enumerate(into)]
    out = [Linear(low, {axis: 1} if axis.extent > 1 else {}) for (low, _), axis in zip(into, axes, strict=True)]
    load = Load(data, tuple((place + Linear(by)).expr() for place, by in zip(out, moved, strict=True)))
    free = tuple(axis for d, axis in enumerate(axes) if d != part and axis.extent > 1)
    return Kernel(like.origins[:1], data, tuple(out), axes[part], free, load)


def on_copies(kernel: Kernel, window: Window, data: Tensor) -> Kernel:
    """The kernel on the wide data: its channel is (copy, channel)."""
    root, axis, dim = window.root, window.axis, window.dim
    weights = np.moveaxis(root.weights, 1 + root.steps.index(axis), 1)
    depth, extent, *others = weights.shape
    padded = np.zeros((window.rows, window.copies * window.steps, *others), weights.dtype)
    padded[:depth, :extent] = weights
    split = padded.reshape(window.rows, window.copies, window.steps, *others).swapaxes(0, 1)
    if window.is_of_rows:
        split = split[::-1]
    wide = split.reshape(window.rows * window.copies, window.steps, *others)
    step = Axis(axis.name, window.steps, True)
    maps = list(root.maps)
    terms = {step if moved is axis else moved: by for moved, by in maps[dim].terms.items()}
    maps[dim] = Linear(maps[dim].const + (window.copies - 1) * window.shift * window.is_of_rows, terms)
    steps = (step, *(other for other in root.steps if other is not axis))
    if window.steps == 1:
        wide, steps = wide[:, 0], steps[1:]
        maps[dim] = Linear(maps[dim].const, {moved: by for moved, by in terms.items() if moved is not step})
    return replace(kernel, root=replace(root, data=data, maps=tuple(maps), steps=steps, weights=wide))
