"""interpolate: an axis resized by a constant matrix, as sums of scaled slices where the matrix repeats itself.

From 16 to 64 elements, say, each fourth new element lies alike between two old ones. All such are then one sum of two
slices, which engines compute where the tensor lies; for a product, the axis has to come to the partitions and back.
"""

from collections.abc import Callable
from functools import reduce

import numpy as np
from tvm import relax

from tvm_neuron.frontend.repeated_rows import Repeated, Row, repeated_rows

MOST_SUMS = 32
"""Each is an instruction or several, with some 0.1 us of its own; a product comes with transposes that take 3 us."""

LEAST_CHANNELS = 64
"""Sums run where the channels lie; transposes and products have all 128 partitions, and pass as often over elements
as two engines share: from half the partitions on sums are quicker, by the clock in 16 of 17 shapes (below, in 2 of 12).
"""

Emit = Callable[[relax.Expr], relax.Expr]
"""Gives an expression its type."""


def interpolated(value: relax.Expr, axis: int, matrix: np.ndarray, emit: Emit) -> relax.Expr:
    """sum over i of value[..., i, ...] * matrix[o, i], with `o` in the place of `i`; the matrix is [new, old].

    Of more than two dimensions, the second is that of channels. Floats of 16 bits are summed in float32.
    """
    has_channels = axis > 1 and int(value.ty.shape[1]) >= LEAST_CHANNELS
    parts = repeated_rows(matrix, MOST_SUMS) if has_channels else None
    if parts is None:
        return _product(value, axis, matrix, emit)
    dtype = str(value.ty.dtype)
    is_short = dtype in ("float16", "bfloat16")
    sums = _Sums(emit(relax.op.astype(value, "float32")) if is_short else value, axis, emit)
    made = [sums.repeated(part) for part in parts]
    whole = made[0] if len(made) == 1 else emit(relax.op.concat(made, axis))
    return emit(relax.op.astype(whole, dtype)) if is_short else whole


def _product(value: relax.Expr, axis: int, matrix: np.ndarray, emit: Emit) -> relax.Expr:
    last = len(value.ty.shape) - 1
    order = [each for each in range(last + 1) if each != axis] + [axis]
    moved = value if axis == last else emit(relax.op.permute_dims(value, order))
    dtype = str(value.ty.dtype)
    product = emit(relax.op.matmul(moved, relax.const(matrix.T.astype(dtype), dtype)))
    return product if axis == last else emit(relax.op.permute_dims(product, [order.index(d) for d in range(last + 1)]))


class _Sums:
    """Parts of the resized tensor, by slices of the one there is."""

    def __init__(self, value: relax.Expr, axis: int, emit: Emit) -> None:
        self.value, self.axis, self.emit = value, axis, emit
        self.dtype, self.size = str(value.ty.dtype), int(value.ty.shape[axis])
        self.steps: relax.Expr | None = None  # from each element to the next

    def repeated(self, part: Repeated) -> relax.Expr:
        """What the rows make, one beside the other and so often."""
        shape = [int(dim) for dim in self.value.ty.shape]
        shape[self.axis] = len(part.rows) * part.count
        if not part.step:
            return self.emit(relax.op.broadcast_to(self._sum(part.rows[0], 1, 1, False), shape))
        is_dense = len(part.rows) > part.step  # several between the same two
        made = [self._sum(row, part.step, part.count, is_dense) for row in part.rows]
        if len(made) == 1:
            return made[0]
        apart = [self.emit(relax.op.expand_dims(each, self.axis + 1)) for each in made]
        return self.emit(relax.op.reshape(self.emit(relax.op.concat(apart, self.axis + 1)), shape))

    def _sum(self, row: Row, step: int, count: int, is_dense: bool) -> relax.Expr:
        if is_dense and len(row.weights) == 2 and abs(sum(row.weights) - 1) < 1e-6:
            before, ahead = (self._slice(tensor, row.first, step, count) for tensor in (self.value, self._steps()))
            return self._add(before, self._scaled(ahead, row.weights[1]))
        taps = enumerate(row.weights, row.first)
        scaled = [self._scaled(self._slice(self.value, at, step, count), weight) for at, weight in taps]
        return reduce(self._add, scaled)

    def _steps(self) -> relax.Expr:
        if self.steps is None:
            ahead, here = (self._slice(self.value, first, 1, self.size - 1) for first in (1, 0))
            self.steps = self.emit(relax.op.subtract(ahead, here))
        return self.steps

    def _slice(self, tensor: relax.Expr, first: int, step: int, count: int) -> relax.Expr:
        end = first + step * (count - 1) + 1
        return self.emit(relax.op.strided_slice(tensor, [self.axis], [first], [end], [step]))

    def _scaled(self, value: relax.Expr, weight: float) -> relax.Expr:
        return value if weight == 1 else self.emit(relax.op.multiply(value, relax.const(weight, self.dtype)))

    def _add(self, left: relax.Expr, right: relax.Expr) -> relax.Expr:
        return self.emit(relax.op.add(left, right))
