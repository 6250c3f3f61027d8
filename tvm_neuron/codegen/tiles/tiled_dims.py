"""tiled_dims: along which dimension each tensor of a group of kernels is cut, so that tiles follow from one another."""

from collections.abc import Mapping, Sequence

from tvm_neuron.allocation.regions import source_maps
from tvm_neuron.schedule.expr import Axis
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor


def tiled_dims(
    kernels: Sequence[Kernel], partition_of: Mapping[Tensor, int], results: Mapping[Tensor, int]
) -> dict[Tensor, int] | None:
    """The dimension of each tensor that the kernels make or read in parts; None if they can't be cut alike.

    `results` gives that of the tensors which are needed after the group. A tensor without one is read whole.
    """
    made = {kernel.out for kernel in kernels}
    dims = dict(results)
    for kernel in reversed(kernels):
        dim = dims.get(kernel.out)
        if dim is None or dim == partition_of[kernel.out]:
            return None
        part = kernel.out_maps[dim]
        if not part.terms.keys().isdisjoint((kernel.channel, *kernel.whole)):
            return None
        if any(step < 0 for step in part.terms.values()):
            return None
        main = main_axis(part)
        axes = {main} if main is not None and has_whole_rows(part) else set(part.terms)
        for tensor in dict.fromkeys(kernel.sources()):
            for maps in source_maps(kernel, tensor, partition_of[tensor]):
                moved = [d for d, part in enumerate(maps) if axes & set(part.terms)]
                if not moved and not axes and tensor not in made:
                    continue
                if not moved and not axes:
                    moved = [dims[tensor]] if tensor in dims else _same_rows(kernel, tensor, dim)
                if not moved and tensor in made:
                    return None
                if not moved:
                    continue
                if len(moved) > 1 or dims.setdefault(tensor, moved[0]) != moved[0]:
                    return None
                if tensor is kernel.out and not _is_at_or_below(kernel.out_maps[dim], maps[moved[0]]):
                    return None  # rows that it copies would be in a later tile
                if moved[0] == partition_of[tensor] or not _is_rising(maps[moved[0]], axes):
                    return None
    return dims


def _is_at_or_below(written: Linear, read: Linear) -> bool:
    """Whether each row is written no higher than the one that is read for it."""
    return written.terms == read.terms and written.const >= read.const


def _same_rows(kernel: Kernel, tensor: Tensor, dim: int) -> list[int]:
    """A kernel of a single row reads the same dimension of a tensor of as many dimensions."""
    return [dim] if len(tensor.shape) == len(kernel.out.shape) else []


def _is_rising(part: Linear, axes: set[Axis]) -> bool:
    return all(step > 0 for axis, step in part.terms.items() if axis in axes)


def has_whole_rows(part: Linear) -> bool:
    """Whether other axes count within each step of the main one."""
    main = main_axis(part)
    rest = sum(step * (axis.extent - 1) for axis, step in part.terms.items() if axis is not main)
    return main is not None and len(part.terms) > 1 and rest < part.terms[main]


def main_axis(part: Linear) -> Axis | None:
    """The axis that moves a map farthest with each step: the one that is cut."""
    return max(part.terms, key=lambda axis: part.terms[axis]) if part.terms else None
