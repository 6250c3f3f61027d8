"""split_outputs: a contraction whose output channels multiply by different steps becomes one for each tile of them.

Where two rows lie on the partitions side by side, a window of 3 rows takes 3 steps over such pairs, but each of the two
output rows needs only 2 of them. Columns of the PE array of one row then skip what only the other one needs.
"""

from dataclasses import replace

import numpy as np

from tvm_neuron.hw import Device
from tvm_neuron.schedule.expr import Axis, Expr, Index, Load, Num, loads, rewrite
from tvm_neuron.schedule.graph import linear_indices
from tvm_neuron.schedule.kernel import ROOT, Contraction, Kernel
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor


def split_outputs(kernels: list[Kernel], device: Device) -> list[Kernel]:
    """The kernels; such contractions in parts of as many output channels as the PE array has columns."""
    return [part for kernel in kernels for part in _parts(kernel, device.pe_columns)]


def _parts(kernel: Kernel, columns: int) -> list[Kernel]:
    root = kernel.root
    extent = kernel.channel.extent
    if not isinstance(root, Contraction) or not root.has_zeros or root.side or extent <= columns or extent % columns:
        return [kernel]
    constants = (load for load in loads(kernel.expr) if load.tensor.value is not None)
    if any(load.indices != (Index(kernel.channel),) for load in constants):
        return [kernel]
    cuts = [(low, low + columns) for low in range(0, extent, columns)]
    parts = [_trimmed(replace(root, weights=root.weights[..., low:high])) for low, high in cuts]
    if all(part.weights.shape[:-1] == root.weights.shape[:-1] for part in parts):
        return [kernel]
    return [_of_channels(kernel, low, high, part) for (low, high), part in zip(cuts, parts, strict=True)]


def _trimmed(root: Contraction) -> Contraction:
    """Without the first and last steps along each axis that multiply by zeros alone."""
    for axis in root.steps:
        at = 1 + root.steps.index(axis)
        used = np.flatnonzero(root.weights.any(axis=tuple(d for d in range(root.weights.ndim) if d != at)))
        if used.size and used[-1] - used[0] + 1 < axis.extent:
            root = _of_steps(root, at, int(used[0]), int(used[-1]) + 1)
    return root


def _of_steps(root: Contraction, at: int, low: int, high: int) -> Contraction:
    """The sum over steps [low, high) of dimension `at` of the weights alone."""
    old = root.steps[at - 1]
    new = [Axis(old.name, high - low, True)] if high - low > 1 else []
    index: int | slice = slice(low, high) if new else low
    maps = []
    for part in root.maps:
        terms = {axis: by for axis, by in part.terms.items() if axis is not old}
        terms |= {axis: part.terms[old] for axis in new if old in part.terms}
        maps.append(Linear(part.const + part.terms.get(old, 0) * low, terms))
    steps = (*root.steps[: at - 1], *new, *root.steps[at:])
    return replace(root, weights=root.weights[(slice(None),) * at + (index,)], maps=tuple(maps), steps=steps)


def _of_channels(kernel: Kernel, low: int, high: int, root: Contraction) -> Kernel:
    """The kernel for output channels [low, high), which it numbers from 0 on."""
    old, new = kernel.channel, Axis(kernel.channel.name, high - low)
    vectors: dict[Tensor, Tensor] = {}

    def leaf(part: Num | Index | Load) -> Expr:
        if not isinstance(part, Load) or part is ROOT:
            return part
        value = part.tensor.value
        if value is None:
            maps = linear_indices(part.indices) or ()
            return Load(part.tensor, tuple(_renumbered(index, old, low, new).expr() for index in maps))
        if part.tensor not in vectors:
            cut = value[low:high]
            vectors[part.tensor] = replace(part.tensor, shape=cut.shape, value=cut)
        return Load(vectors[part.tensor], (Index(new),))

    out = tuple(_renumbered(part, old, low, new) for part in kernel.out_maps)
    return replace(kernel, out_maps=out, channel=new, expr=rewrite(kernel.expr, leaf), root=root)


def _renumbered(part: Linear, old: Axis, low: int, new: Axis) -> Linear:
    terms = {new if axis is old else axis: by for axis, by in part.terms.items()}
    return Linear(part.const + part.terms.get(old, 0) * low, terms)
