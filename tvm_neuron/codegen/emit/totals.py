"""totals: sums of what ACT makes, kept by the instructions that make it, where that takes engines less time."""

from dataclasses import dataclass, replace
from math import prod
from typing import Any

from tvm_neuron.allocation.storage import Span, Spans
from tvm_neuron.codegen.emit.emitter import Emitter
from tvm_neuron.codegen.emit.squeeze import Squeeze
from tvm_neuron.codegen.emit.targets import Emits
from tvm_neuron.codegen.emit.tile_end import TileEnd
from tvm_neuron.hw import Device
from tvm_neuron.isa import Activation, ActivationReduce, Instruction, TensorReduce, Tile
from tvm_neuron.isa.limits import elementwise_cycles
from tvm_neuron.isa.tile import MAX_FREE_DIMS
from tvm_neuron.schedule.expr import Axis
from tvm_neuron.schedule.kernel import ROOT, Kernel, is_read_backward
from tvm_neuron.schedule.sums import Axes
from tvm_neuron.schedule.tiling import PARTITIONS, Region
from tvm_neuron.sim.clock import clock_hz, duration_ps


@dataclass(frozen=True)
class Total:
    """The sums that `kernel` would take; `axes` are those of the kernel that makes what they are of."""

    kernel: Kernel
    axes: Axes

    def sizes(self, sizes: dict[Axis, int]) -> dict[Axis, int]:
        """How much of each free axis an instruction covers that makes all elements of one sum in each partition."""
        kept = {self.axes[axis] for axis in self.kernel.free}
        return {axis: 1 if axis in kept else axis.extent for axis in sizes}

    def tile(self, emitter: Emitter, spans: Spans) -> Tile:
        """Where the sums lie of what one instruction makes."""
        kernel = self.kernel
        own = {axis: spans[self.axes[axis]] for axis in kernel.free}
        own[kernel.channel] = spans[self.axes[kernel.channel]] if kernel.channel in self.axes else Span(0, 1)
        found = emitter.storage(kernel.out).tile(kernel.out_maps, kernel.channel, kernel.free, own)
        assert isinstance(found, Tile), f"{kernel.out} was not given a place in SBUF"
        return replace(found, dims=((1, 1),))


@dataclass(frozen=True)
class Totalling:
    """Takes the one instruction of ACT that makes a tile, and lets it keep the sums, too."""

    builder: Emits
    total: Tile

    def emit(self, instruction: Instruction) -> None:
        """Takes the instruction."""
        assert isinstance(instruction, Activation)
        self.builder.emit(ActivationReduce(**_operands(instruction), total=self.total))


def total_of(emitter: Emitter, kernel: Kernel, region: Region, usual: dict[Axis, int]) -> Total | None:
    """The sums to keep while the kernel runs over a region; None if there are none, or they take longer so.

    `usual` is how much of each free axis its instructions cover otherwise.
    """
    if kernel not in emitter.sums:
        return None
    total = Total(*emitter.sums[kernel])
    plan, after = emitter.plan, total.kernel
    is_rounded = after.expr is not ROOT and plan.dtypes[after.out] != "float32"
    if is_rounded or not {kernel.out, after.out}.isdisjoint(plan.in_dram):
        return None
    here, there = (k.out_maps[plan.partition_of[k.out]].const if k.out_maps else 0 for k in (kernel, after))
    sizes = total.sizes(usual)
    long = [axis for axis, size in sizes.items() if size > 1]
    if any(is_read_backward(kernel, axis) for axis in long):
        return None
    if (here - there) % PARTITIONS or len(long) > MAX_FREE_DIMS or any(region[a] != (0, a.extent) for a in long):
        return None
    spans = {axis: Span(0, size) for axis, size in sizes.items()}
    spans[kernel.channel] = Span(0, min(kernel.channel.extent, PARTITIONS))
    end = TileEnd(emitter, kernel, spans)
    made = end.instructions(Squeeze(end.patterns))
    if len(made) != 1 or not isinstance(made[0], Activation):
        return None
    pays = _pays(emitter.device, made[0], total.tile(emitter, spans), prod(usual.values()))
    return total if pays else None


def _pays(device: Device, made: Activation, total: Tile, tile_elems: int) -> bool:
    """Whether the sums are no more work with the elements than after them, in instructions of so many elements."""
    whole = ActivationReduce(**_operands(made), total=total).cost(device).busy_cycles
    elems = made.result.free_elems
    alone = elementwise_cycles(device, tile_elems, made.source, made.result) * elems // tile_elems
    after = TensorReduce(result=total, source=made.result, op="add", axes=len(made.result.dims))
    summed = after.cost(device).busy_cycles
    made_hz, summed_hz = clock_hz(device, made.engine), clock_hz(device, after.engine)
    return duration_ps(whole, made_hz) <= duration_ps(alone, made_hz) + duration_ps(summed, summed_hz)


def _operands(made: Activation) -> dict[str, Any]:
    return {name: getattr(made, name) for name in ("result", "source", "scale", "bias", "function")}
