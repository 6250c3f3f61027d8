"""move_ps: how long a move takes, by the costs of the transfers and instructions that it becomes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tvm_neuron.allocation.layouts import dram_strides
from tvm_neuron.codegen.kernels.bounce import permutes_partitions
from tvm_neuron.codegen.overlap.work import work_of
from tvm_neuron.hw import Device
from tvm_neuron.isa import Affine, DmaCopy, DramTile, Tile
from tvm_neuron.isa.dtypes import device_dtype
from tvm_neuron.schedule.expr import Axis, Load
from tvm_neuron.schedule.graph import Block, linear_indices
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.rule import Context, Rule, apply_rules
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.sim.clock import clock_hz, duration_ps


def pricer(rules: Sequence[Rule], context: Context) -> Callable[[Block], int]:
    """What tells of a block that only moves data how long it takes as the kernel that the rules make of it."""
    return lambda block: move_ps(apply_rules(block, rules, context), context.partition_of, context.device)


def move_ps(kernel: Kernel, partition_of: Mapping[Tensor, int], device: Device) -> int:
    """Its transfers and its work on each engine, one behind the other; that an output is stored counts, too."""
    moves = _Moves(kernel, partition_of, device)
    if not kernel.by_dma:
        stored = [moves.transfer_ps(_Side(kernel.out, kernel.out_maps))] if kernel.out.kind == "output" else []
        return sum(work_of(kernel, device).values()) + sum(stored)
    load = kernel.expr
    assert isinstance(load, Load)
    source = _Side(load.tensor, linear_indices(load.indices) or ())
    if load.tensor.kind == "temp" and permutes_partitions(kernel, load, partition_of):
        return moves.whole_ps(load.tensor) + moves.transfer_ps(source, from_dram=True)
    return moves.transfer_ps(source)


@dataclass(frozen=True)
class _Side:
    """A tensor, and where in it is read or written."""

    tensor: Tensor
    maps: Sequence[Linear]


class _Moves:
    def __init__(self, kernel: Kernel, partition_of: Mapping[Tensor, int], device: Device) -> None:
        self.kernel, self.partition_of, self.device = kernel, partition_of, device

    def transfer_ps(self, source: _Side, from_dram: bool = False) -> int:
        """From there to where the kernel writes."""
        target = _Side(self.kernel.out, self.kernel.out_maps)
        axes = (self.kernel.channel, *self.kernel.free)
        return self._ps(self._tile(target, axes, target.tensor.kind == "output"), self._tile(source, axes, from_dram))

    def whole_ps(self, tensor: Tensor) -> int:
        """All of a tensor to device memory, where it has the same rows."""
        axes = tuple(Axis(f"d{d}", extent) for d, extent in enumerate(tensor.shape))
        side = _Side(tensor, [Linear(0, {axis: 1}) for axis in axes])
        dim = self.partition_of[tensor]
        axes = (axes[dim], *axes[:dim], *axes[dim + 1 :])
        return self._ps(self._tile(side, axes, True), self._tile(side, axes, False))

    def _tile(self, side: _Side, axes: Sequence[Axis], in_dram: bool) -> Tile | DramTile:
        """The pattern along the axes: outputs lie in DRAM in order, all else there as in SBUF, by partitions."""
        tensor, dtype = side.tensor, device_dtype(side.tensor.dtype)
        order = list(range(len(tensor.shape)))
        if not in_dram or tensor.kind == "temp":
            order.sort(key=lambda d: (d != self.partition_of[tensor], d))
        strides = dram_strides(tensor.shape, order)
        steps = [sum(m.terms.get(a, 0) * s for m, s in zip(side.maps, strides, strict=True)) for a in axes]
        dims = tuple((step, axis.extent) for step, axis in zip(steps, axes, strict=True))
        if in_dram:
            return DramTile(0, dtype, Affine(), dims)
        return Tile("sbuf", dtype, Affine(), axes[0].extent, Affine(), dims[1:])

    def _ps(self, target: Tile | DramTile, source: Tile | DramTile) -> int:
        cost = DmaCopy(target=target, source=source, ring=0).cost(self.device)
        return duration_ps(cost.busy_cycles + cost.latency_cycles, clock_hz(self.device, "dma"))
