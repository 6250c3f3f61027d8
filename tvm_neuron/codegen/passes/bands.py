"""band_of: a convolution of few channels as products with bands of its weights, rows of the image on the partitions.

A filter of 11 x 11 over an image of one channel keeps one of the PE array's 128 rows busy, 121 times for each pixel,
and one lane of the engines behind it. With rows on the partitions, the sums over 11 rows of a column of the filter are
a product with a matrix that has this column along its diagonal: 11 products in all. What mixes a few channels pixel by
pixel, as colours or the heads of attention, is the same with a filter of one pixel.
"""

from dataclasses import dataclass, replace
from math import prod

import numpy as np

from tvm_neuron.schedule.expr import Axis, Expr, Index, Load, Num, rewrite
from tvm_neuron.schedule.graph import Block, linear_indices
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.roles import data_factor, factors, is_constant_contraction
from tvm_neuron.schedule.tensor import Tensor

_FEW = 16  # channels of the data, and of the output: of more, partitions hold channels
_MOST_ELEMS = 1 << 22  # of all matrices of a convolution


@dataclass(frozen=True)
class _Window:
    """Along dimension `dim` of the data, a convolution reads `place`, of an axis of its output and one of `weights`.

    That is the `step`; without one, it reads pixel by pixel.
    """

    data: Load
    weights: Load
    dim: int
    place: Linear
    output: Axis
    step: Axis | None


def band_of(block: Block) -> Block | None:
    """A convolution of so few channels with bands along one of its dimensions; None for any other block."""
    window = _window(block)
    return None if window is None else _with_band(block, window)


def _window(block: Block) -> _Window | None:
    """The longest window of a convolution of few channels, of two as long the first: the last dimension is a row.

    Of what has none, the longest dimension but the last.
    """
    data = data_factor(block)
    constants = [part for part in factors(block.expr) if isinstance(part, Load) and part is not data]
    if data is None or len(constants) != 1 or not is_constant_contraction(block):
        return None
    maps, known = linear_indices(data.indices), linear_indices(constants[0].indices)
    if maps is None or known is None or any(len(part.terms) > 1 for part in known):
        return None
    changing = [axis for part in known for axis in part.terms]
    used = [axis for part in maps for axis in part.terms]
    every = [_Window(data, constants[0], dim, part, *_along(part)) for dim, part in enumerate(maps) if _is_window(part)]
    found = [each for each in every if used.count(each.output) == 1 and each.output not in changing]
    windows = [each for each in found if each.step is not None]
    channels = {*changing} - {each.step for each in windows}
    summed = prod(axis.extent for axis in channels if axis.is_reduction)
    if not found or summed > _FEW or prod(axis.extent for axis in channels) > _FEW * summed:
        return None
    if windows:
        chosen = max(windows, key=lambda each: each.step.extent if each.step else 1)
    else:
        chosen = max(found[:-1] or found, key=lambda each: each.output.extent)
    if chosen.step is not None and changing.count(chosen.step) != 1:
        return None
    extent = chosen.step.extent if chosen.step else 1
    size = constants[0].tensor.elems // extent * data.tensor.shape[chosen.dim] * chosen.output.extent
    return chosen if size <= _MOST_ELEMS else None


def _is_window(part: Linear) -> bool:
    """Whether a dimension of the data is read forward along an axis of the output, and one of the weights at most."""
    outputs = [axis for axis in part.terms if not axis.is_reduction]
    return len(outputs) == 1 and len(part.terms) <= 2 and all(by > 0 for by in part.terms.values())


def _along(part: Linear) -> tuple[Axis, Axis | None]:
    """The axis of the output and that of the weights."""
    return next(a for a in part.terms if not a.is_reduction), next((a for a in part.terms if a.is_reduction), None)


def _with_band(block: Block, window: _Window) -> Block:
    """The sums over the whole dimension of the data, with weights that are zero but where the window is."""
    row = Axis("row", window.data.tensor.shape[window.dim], True)
    known = linear_indices(window.weights.indices) or ()
    at = next((d for d, part in enumerate(known) if window.step in part.terms), None)
    old = window.weights.tensor
    assert old.value is not None
    values, by = old.value[None], 0
    if at is not None and window.step is not None:
        first, step = known[at].const, known[at].terms[window.step]
        values = np.moveaxis(old.value, at, 0)[first : first + step * window.step.extent : step]
        by = window.place.terms[window.step]
    band = np.zeros((row.extent, window.output.extent, *values.shape[1:]), values.dtype)
    places = np.arange(window.output.extent)
    for number, value in enumerate(values):
        band[window.place.const + window.place.terms[window.output] * places + by * number, places] = value
    band = np.moveaxis(band, 1, -1)
    weights = Tensor(f"{old.name}.band", band.shape, old.dtype, value=band)
    rest = [part for d, part in enumerate(window.weights.indices) if d != at]
    read = Load(weights, (Index(row), *rest, Index(window.output)))

    def leaf(part: Num | Index | Load) -> Expr:
        if not isinstance(part, Load):
            return part
        if part.tensor is old:
            return read
        return Load(part.tensor, tuple(Index(row) if d == window.dim else i for d, i in enumerate(part.indices)))

    axes = (*(axis for axis in block.axes if axis is not window.step), row)
    return replace(block, axes=axes, expr=rewrite(block.expr, leaf))
