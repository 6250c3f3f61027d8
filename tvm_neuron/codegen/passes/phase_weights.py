"""weights_of: the weights of a convolution of an enlarged map, for the small map: taps that meet are added up."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.schedule.evaluate import evaluate
from tvm_neuron.schedule.expr import Apply, Axis, Expr, Load, Num, axes_of
from tvm_neuron.schedule.graph import Block
from tvm_neuron.schedule.roles import data_factor, factors, table_load
from tvm_neuron.schedule.tensor import Tensor


@dataclass(frozen=True)
class Small:
    """What is read in the place of the enlarged map, and how much padding comes before it along each dimension."""

    tensor: Tensor
    before: tuple[int, ...]

    def indices(self, data: Load) -> list[Expr]:
        """Where it has what is read of a map of the same size without padding."""
        return [
            Apply("add", (index, Num(before))) if before else index
            for index, before in zip(data.indices, self.before, strict=True)
        ]


def weights_of(
    block: Block, taps: Sequence[Axis | None], meets: Sequence[NDArray[np.float32]], places: Sequence[Axis]
) -> Load:
    """The product of the block's constants, with the axis `places` for each of the taps.

    Of each, `meets` [taps, places, ...] has 1 where a tap meets a place. Its further dimensions come last, and have the
    axes that follow in `places`: one for each of these.
    """
    data = data_factor(block)
    constants = [part for part in factors(block.expr) if part is not data]
    used = {axis for part in constants for axis in axes_of(part)} | {tap for tap in taps if tap}
    axes = [axis for axis in block.axes if axis in used]
    values = np.ones([axis.extent for axis in axes], np.float32)
    for part in constants:
        values = values * evaluate(part, axes)
    left = list(places)
    for tap, matrix in zip(taps, meets, strict=True):
        own, left = left[: matrix.ndim - 1], left[matrix.ndim - 1 :]
        if tap is None:
            values = values[..., None]
        else:
            at = axes.index(tap)
            values, axes = np.moveaxis(values, at, -1), [*axes[:at], *axes[at + 1 :]]
        values, axes = np.tensordot(values, matrix, (-1, 0)), [*axes, *own]
    dtype = next(part.tensor.dtype for part in constants if isinstance(part, Load))
    return table_load(f"{block.output.name}.phase", values.astype(dtype), axes, dtype)
