"""split_outputs: a contraction whose output channels multiply by different steps becomes one for each tile of them.

Where two rows lie on the partitions side by side, a window of 3 rows takes 3 steps over such pairs, but each of the two
output rows needs only 2 of them. Columns of the PE array of one row then skip what only the other one needs.
"""

from dataclasses import replace

import numpy as np

from tvm_neuron.codegen.kernels.channels import channels_of, has_plain_constants
from tvm_neuron.hw import Device
from tvm_neuron.schedule.expr import Axis
from tvm_neuron.schedule.kernel import Contraction, Kernel
from tvm_neuron.schedule.linear import Linear


def split_outputs(kernels: list[Kernel], device: Device) -> list[Kernel]:
    """The kernels; such contractions in parts of as many output channels as the PE array has columns."""
    return [part for kernel in kernels for part in _parts(kernel, device.pe_columns)]


def _parts(kernel: Kernel, columns: int) -> list[Kernel]:
    root = kernel.root
    extent = kernel.channel.extent
    if not isinstance(root, Contraction) or not root.has_zeros or root.side or extent <= columns or extent % columns:
        return [kernel]
    if not has_plain_constants(kernel):
        return [kernel]
    parts = [channels_of(kernel, low, columns) for low in range(0, extent, columns)]
    trimmed = [_trimmed(part) for part in parts]
    return [kernel] if trimmed == parts else trimmed


def _trimmed(kernel: Kernel) -> Kernel:
    """Without the first and last steps along each axis that multiply by zeros alone."""
    root = kernel.root
    assert isinstance(root, Contraction)
    for axis in root.steps:
        at = 1 + root.steps.index(axis)
        used = np.flatnonzero(root.weights.any(axis=tuple(d for d in range(root.weights.ndim) if d != at)))
        if used.size and used[-1] - used[0] + 1 < axis.extent:
            root = _of_steps(root, at, int(used[0]), int(used[-1]) + 1)
    return kernel if root is kernel.root else replace(kernel, root=root)


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
