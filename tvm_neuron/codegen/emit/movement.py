"""emit_movement: kernels that only move data, by DMA between any two places."""

from itertools import product

import numpy as np

from tvm_neuron.allocation.layouts import dram_strides
from tvm_neuron.allocation.storage import InDram, OnChip, Storage
from tvm_neuron.codegen.emit.emitter import Emitter
from tvm_neuron.codegen.kernels.exact_constants import TOO_LONG
from tvm_neuron.errors import InternalError, UnschedulableError
from tvm_neuron.isa.dtypes import DTYPES, device_dtype
from tvm_neuron.schedule.expr import Axis, Load
from tvm_neuron.schedule.graph import linear_indices
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.partitions import across
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import Segment, runs

Maps = tuple[Linear, ...]


def emit_movement(emitter: Emitter, kernel: Kernel) -> None:
    """Emits the transfers of a kernel.

    Raises:
        InternalError: partitions change places between two tensors in SBUF.
    """
    load = kernel.expr
    assert isinstance(load, Load)
    target = emitter.storage(kernel.out)
    source = emitter.storage(load.tensor) if load.tensor.value is None else _table(emitter, kernel, load.tensor)
    maps = linear_indices(load.indices) or ()
    outer = outer_axes(kernel, target)
    free = {axis: (0, axis.extent) for axis in kernel.free if axis not in outer}
    channels = emitter.channels(kernel)
    for values in product(*(range(axis.extent) for axis in outer)):
        fixed = dict(zip(outer, values, strict=True))
        here, there = fix(maps, fixed), fix(kernel.out_maps, fixed)
        for run in runs_of(kernel, channels, (source, here), (target, there)):
            emitter.copy(source, here, target, there, kernel.channel, free, run, emitter.move_queue(kernel))


def _table(emitter: Emitter, kernel: Kernel, tensor: Tensor) -> InDram:
    """A constant in device memory."""
    value, origin = np.asarray(tensor.value), kernel.origins[0]
    dtype = device_dtype(tensor.dtype) if device_dtype(tensor.dtype) in DTYPES else "float32"
    if tensor.dtype == "int64" and not np.array_equal(value.astype(DTYPES[dtype]), value):
        raise UnschedulableError(f"{origin}: {TOO_LONG}", origin.name, TOO_LONG)
    index = emitter.builder.add_weight(f"{origin.name}.table", value, dtype)
    return InDram(index, dtype, dram_strides(tensor.shape, range(len(tensor.shape))))


def runs_of(kernel: Kernel, channels: int, *sides: tuple[Storage, Maps]) -> list[Segment]:
    """The first so many channels in runs that stay within a chunk of 128 partitions on each side that lies in SBUF."""
    firsts = []
    for storage, maps in sides:
        if isinstance(storage, OnChip):
            part = maps[storage.partition_dim]
            if across(part) not in ({}, {kernel.channel: 1}):
                raise InternalError(f"{kernel.origins[0]} permutes partitions within SBUF")
            firsts.append(part.const)
    return runs(channels, firsts, any_start=True) if firsts else [(0, channels, 1)]


def outer_axes(kernel: Kernel, target: Storage) -> list[Axis]:
    """Further axes of the target's partitions: they take a transfer each."""
    if isinstance(target, InDram):
        return []
    return [axis for axis in kernel.out_maps[target.partition_dim].terms if axis is not kernel.channel]


def fix(maps: Maps, values: dict[Axis, int]) -> Maps:
    """The maps where some axes have these values."""
    return tuple(
        Linear(
            part.const + sum(step * values[axis] for axis, step in part.terms.items() if axis in values),
            {axis: step for axis, step in part.terms.items() if axis not in values},
        )
        for part in maps
    )
