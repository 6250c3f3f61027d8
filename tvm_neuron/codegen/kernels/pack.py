"""pack_depth: a convolution of few channels reads several window rows at once, as further partitions.

Three channels use 3 of the PE array's 128 rows, and a 7x7 window takes 49 matmuls. With the window's rows laid on
partitions beside the channels the same sum takes 7 matmuls of 21 rows. The DMA that brings the data in lays them out.
"""

from dataclasses import replace

import numpy as np

from tvm_neuron.hw import Device
from tvm_neuron.schedule.expr import Axis, Load
from tvm_neuron.schedule.kernel import Contraction, Kernel
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor

FEW_CHANNELS = 16


def pack_depth(kernels: list[Kernel], partition_of: dict[Tensor, int], device: Device) -> list[Kernel]:
    """The kernels with such contractions packed, each after a move that lays out its data."""
    found: list[Kernel] = []
    for kernel in kernels:
        root = kernel.root
        is_narrow = isinstance(root, Contraction) and root.weights.shape[0] <= FEW_CHANNELS
        if isinstance(root, Contraction) and is_narrow and _is_brought_in(root.data, kernels):
            picked = _window_axis(root, partition_of[root.data], device)
            if picked is not None:
                found += _pack(kernel, root, *picked, partition_of)
                continue
        found.append(kernel)
    return found


def _is_brought_in(data: Tensor, kernels: list[Kernel]) -> bool:
    """Whether DMA alone makes the tensor (an input, or one padded) and only one kernel reads it."""
    readers = sum(data in kernel.sources() for kernel in kernels)
    writers = [kernel for kernel in kernels if kernel.out is data]
    brought = all(kernel.by_dma or not any(kernel.sources()) for kernel in writers)
    return readers == 1 and brought and (data.kind == "input" or any(kernel.by_dma for kernel in writers))


def _window_axis(root: Contraction, partition_dim: int, device: Device) -> tuple[Axis, int, Axis] | None:
    """(window axis, dimension it moves along, output axis of that dimension); rows stay whole, so not the last one."""
    for step in root.steps:
        dims = [d for d, m in enumerate(root.maps) if step in m.terms]
        if len(dims) != 1 or dims[0] in (partition_dim, len(root.maps) - 1):
            continue
        others = [axis for axis in root.maps[dims[0]].terms if axis is not step]
        if len(others) == 1 and others[0] not in root.steps and root.weights.shape[0] * step.extent <= device.pe_rows:
            return step, dims[0], others[0]
    return None


def _pack(
    kernel: Kernel, root: Contraction, step: Axis, dim: int, row: Axis, partition_of: dict[Tensor, int]
) -> list[Kernel]:
    data, part = root.data, partition_of[root.data]
    depth = root.weights.shape[0]
    shape = list(data.shape)
    shape[part], shape[dim] = depth * step.extent, row.extent
    packed = Tensor(f"{data.name}.packed", tuple(shape), data.dtype)
    partition_of[packed] = part
    if data.kind == "temp":
        data.kind = "scratch"  # the move reads it in an order that only DRAM allows

    channel, window = Axis("c", depth), Axis("w", step.extent)
    axes = [Axis(f"d{d}", extent) for d, extent in enumerate(shape)]
    into = [Linear(0, {axis: 1} if axis.extent > 1 else {}) for axis in axes]
    into[part] = Linear(0, {channel: 1, window: depth})
    out_of = list(into)
    out_of[part] = Linear(root.maps[part].const, {channel: 1})
    moves = root.maps[dim].terms
    out_of[dim] = Linear(root.maps[dim].const, {axes[dim]: moves[row], window: moves[step]})
    move = Kernel(
        origins=kernel.origins[:1],
        out=packed,
        out_maps=tuple(into),
        channel=channel,
        free=(window, *(axis for d, axis in enumerate(axes) if d != part and axis.extent > 1)),
        expr=Load(data, tuple(m.expr() for m in out_of)),
        by_dma=True,
    )

    at = 1 + root.steps.index(step)
    weights = np.moveaxis(root.weights, at, 0)
    weights = weights.reshape(-1, *weights.shape[2:])
    maps = [Linear(m.const, m.terms) for m in root.maps]
    maps[part], maps[dim] = Linear(0), Linear(0, {row: 1})
    steps = tuple(axis for axis in root.steps if axis is not step)
    new_root = replace(root, data=packed, maps=tuple(maps), steps=steps, weights=weights)
    return [move, replace(kernel, root=new_root)]
