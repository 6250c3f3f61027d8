"""emit_movement: kernels that only move data, by DMA between any two places."""

from itertools import product

from tvm_neuron.allocation.storage import InDram, OnChip
from tvm_neuron.codegen.emitter import MOVE_QUEUE, Emitter
from tvm_neuron.codegen.tiling import runs
from tvm_neuron.errors import CompileError
from tvm_neuron.schedule.expr import Axis, Load
from tvm_neuron.schedule.graph import linear_indices
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.linear import Linear

MAX_COPY_FREE_AXES = 3


def emit_movement(emitter: Emitter, kernel: Kernel) -> None:
    """Emits the transfers of a kernel.

    Raises:
        CompileError: partitions change places between two tensors in SBUF.
    """
    load = kernel.expr
    assert isinstance(load, Load)
    source, target = emitter.storage(load.tensor), emitter.storage(kernel.out)
    maps = linear_indices(load.indices) or ()
    firsts = [0]
    for storage, side in ((source, maps), (target, kernel.out_maps)):
        if isinstance(storage, OnChip):
            part = side[storage.partition_dim]
            if part.terms and part.terms != {kernel.channel: 1} and storage is source:
                raise CompileError(f"{kernel.origins[0].op} '{kernel.origins[0].name}' permutes partitions within SBUF")
            if part.terms:
                firsts.append(part.const)
    outer = _outer_axes(kernel, target)
    free = [axis for axis in kernel.free if axis not in outer]
    for values in product(*(range(axis.extent) for axis in outer)):
        fixed = dict(zip(outer, values, strict=True))
        here, there = _fix(maps, fixed), _fix(kernel.out_maps, fixed)
        first = [f + (there[target.partition_dim].const if isinstance(target, OnChip) else 0) for f in firsts[-1:]]
        is_dram = isinstance(source, InDram) and isinstance(target, InDram)
        parts = [(0, kernel.channel.extent, 1)] if is_dram else runs(kernel.channel.extent, first if outer else firsts, any_start=True)
        for run in parts:
            emitter.copy(source, here, target, there, kernel.channel, free, run, MOVE_QUEUE)


def _outer_axes(kernel: Kernel, target: InDram | OnChip) -> list[Axis]:
    """Axes that take a transfer each: further axes of the target's partitions, and what no pattern has room for."""
    outer = []
    if isinstance(target, OnChip):
        outer = [axis for axis in kernel.out_maps[target.partition_dim].terms if axis is not kernel.channel]
    rest = [axis for axis in kernel.free if axis not in outer]
    return outer + rest[: max(0, len(rest) - MAX_COPY_FREE_AXES)]


def _fix(maps: tuple[Linear, ...], values: dict[Axis, int]) -> tuple[Linear, ...]:
    return tuple(
        Linear(
            part.const + sum(step * values[axis] for axis, step in part.terms.items() if axis in values),
            {axis: step for axis, step in part.terms.items() if axis not in values},
        )
        for part in maps
    )
