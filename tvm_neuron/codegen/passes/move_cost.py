"""kernel_ps: how long a kernel takes by itself, by the costs of the transfers and instructions that it becomes."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from tvm_neuron.allocation.layouts import dram_strides
from tvm_neuron.allocation.storage import by_rows
from tvm_neuron.codegen.kernels.bounce import permutes_partitions
from tvm_neuron.codegen.kernels.simplified import simplified
from tvm_neuron.codegen.overlap.work import work_of
from tvm_neuron.hw import Device
from tvm_neuron.isa import Affine, DmaCopy, DramTile, Tile
from tvm_neuron.isa.dtypes import device_dtype
from tvm_neuron.schedule.expr import Axis, Load
from tvm_neuron.schedule.graph import Block, linear_indices
from tvm_neuron.schedule.kernel import ROOT, Kernel
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.rule import Context, Rule, apply_rules
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import PARTITIONS
from tvm_neuron.sim.clock import clock_hz, duration_ps


def pricer(rules: Sequence[Rule], context: Context) -> Callable[[Block], int]:
    """What tells of a block how long it takes as the kernel that the rules make of it."""

    def price_ps(block: Block) -> int:
        return kernel_ps(simplified(apply_rules(block, rules, context)), context.partition_of, context.device)

    return price_ps


def kernels_ps(kernels: Sequence[Kernel], partition_of: Mapping[Tensor, int], device: Device) -> int:
    """All of them, with what comes from device memory once for all that read it."""
    crossing = Counter(tensor for kernel in kernels for tensor in crossing_of(kernel))
    again = sum((count - 1) * staged_ps(tensor, partition_of, device) for tensor, count in crossing.items())
    return sum(kernel_ps(kernel, partition_of, device) for kernel in kernels) - again


def crossing_of(kernel: Kernel) -> set[Tensor]:
    """What engines read of device memory, and a transfer of its own brings."""
    return set() if kernel.by_dma else {tensor for tensor in kernel.sources() if tensor.kind != "temp"}


def kernel_ps(kernel: Kernel, partition_of: Mapping[Tensor, int], device: Device) -> int:
    """Its transfers and its work on each engine, one behind the other, and what crosses to or from device memory.

    A gather is left out: what it takes depends on no layout.
    """
    target, load, moves = _Side(kernel.out, kernel.out_maps), kernel.expr, _Moves(partition_of, device)
    axes = (kernel.channel, *kernel.free)
    if not kernel.by_dma:
        stored = moves.between_ps(target, False, target, True, axes) if kernel.out.is_stored else 0
        return sum(work_of(kernel, device).values()) + stored + sum(map(moves.whole_ps, crossing_of(kernel)))
    if not isinstance(load, Load) or load is ROOT:
        return 0
    source, is_stored = _Side(load.tensor, linear_indices(load.indices) or ()), kernel.out.is_stored
    if load.tensor.kind == "temp" and permutes_partitions(kernel, load, partition_of):
        return moves.whole_ps(load.tensor, is_stored=True) + moves.between_ps(source, True, target, is_stored, axes)
    comes = load.tensor.kind != "temp" or load.tensor.value is not None
    return moves.between_ps(source, comes, target, is_stored, axes)


def end_ps(kernel: Kernel, device: Device) -> int:
    """How long it takes to bring as many elements as a kernel writes out of PSUM, as the end of another kernel."""
    return sum(work_of(replace(kernel, root=None, expr=ROOT), device).values())


def staged_ps(tensor: Tensor, partition_of: Mapping[Tensor, int], device: Device) -> int:
    """All of a tensor between SBUF and device memory."""
    return _Moves(partition_of, device).whole_ps(tensor, is_stored=tensor.is_stored)


@dataclass(frozen=True)
class _Side:
    """A tensor, and where in it is read or written."""

    tensor: Tensor
    maps: Sequence[Linear]


@dataclass(frozen=True)
class _Moves:
    partition_of: Mapping[Tensor, int]
    device: Device

    def whole_ps(self, tensor: Tensor, is_stored: bool = False) -> int:
        """All of a tensor from device memory, or there, which some chips don't transpose at a rate."""
        axes = tuple(Axis(f"d{d}", extent) for d, extent in enumerate(tensor.shape))
        side = _Side(tensor, [Linear(0, {axis: 1}) for axis in axes])
        dim = self.partition_of[tensor]
        return self.between_ps(side, not is_stored, side, is_stored, (axes[dim], *axes[:dim], *axes[dim + 1 :]))

    def between_ps(
        self, source: _Side, is_from_dram: bool, target: _Side, is_to_dram: bool, axes: Sequence[Axis]
    ) -> int:
        """A transfer along the axes, the first of which is that of the partitions."""
        for side, in_dram in ((source, is_from_dram), (target, is_to_dram)):
            axes = self._by_rows(side, axes) if in_dram else axes
        copy = DmaCopy(
            target=self._tile(target, axes, is_to_dram), source=self._tile(source, axes, is_from_dram), ring=0
        )
        cost = copy.cost(self.device)
        return duration_ps(cost.busy_cycles + cost.latency_cycles, clock_hz(self.device, "dma"))

    def _tile(self, side: _Side, axes: Sequence[Axis], in_dram: bool) -> Tile | DramTile:
        """The pattern along the axes."""
        dtype, steps = device_dtype(side.tensor.dtype), self._steps(side, axes, in_dram)
        dims = tuple((step, axis.extent) for step, axis in zip(steps, axes, strict=True))
        if in_dram:
            return DramTile(0, dtype, Affine(), dims)
        return Tile("sbuf", dtype, Affine(), axes[0].extent, Affine(), dims[1:])

    def _by_rows(self, side: _Side, axes: Sequence[Axis]) -> Sequence[Axis]:
        """The axes as they follow each other in DRAM, behind that of the partitions."""
        return (axes[0], *by_rows(axes[1:], dict(zip(axes, self._steps(side, axes, True), strict=True))))

    def _steps(self, side: _Side, axes: Sequence[Axis], in_dram: bool) -> list[int]:
        """How far each axis steps: what crosses the border lies in DRAM in order, all else as in SBUF, by rows."""
        tensor = side.tensor
        order = list(range(len(tensor.shape)))
        if tensor.value is None and (not in_dram or tensor.kind in ("temp", "scratch")):
            order.sort(key=lambda d: (d != self.partition_of[tensor], d))
        strides = dram_strides(tensor.shape, order)
        maps = list(side.maps)
        if not in_dram and tensor.shape:  # whole chunks of partitions lie beside each other
            dim = self.partition_of[tensor]
            terms = maps[dim].terms.items()
            maps[dim] = Linear(0, {axis: step if step % PARTITIONS else step // PARTITIONS for axis, step in terms})
        return [sum(m.terms.get(a, 0) * s for m, s in zip(maps, strides, strict=True)) for a in axes]
