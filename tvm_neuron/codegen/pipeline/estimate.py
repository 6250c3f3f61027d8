"""Estimate: what any range of kernels would take as a stage of its own, from what each kernel's instructions cost."""

from dataclasses import dataclass, field
from math import prod

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.allocation.layouts import bytes_on_chip
from tvm_neuron.codegen.emit_stage import emit_stage
from tvm_neuron.codegen.residents import Room
from tvm_neuron.codegen.stage import Stage
from tvm_neuron.hw import Device
from tvm_neuron.isa import DramTile
from tvm_neuron.isa.dtypes import size_bytes
from tvm_neuron.program import Node, Program
from tvm_neuron.program.program import walk
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.sim.clock import PS_PER_SECOND, clock_hz, duration_ps

Array = NDArray[np.float64]
_SLACK = 8  # this part of SBUF is taken by what only a plan can tell: staging, and gaps between tensors


@dataclass
class Estimate:
    """By kernel: time without weights' transfers, and bytes; `crossing` and `live` also have a last entry of 0.

    `live` are the bytes of a partition that tensors take while the kernel runs, `crossing` the bytes of DRAM that a cut
    before it would move.
    """

    work_ps: Array
    weight_bytes: Array
    live: Array
    crossing: Array
    kept_capacity: float  # bytes of a partition, less `live`
    device: Device
    measured: dict[tuple[int, int], float] = field(default_factory=dict)  # picoseconds of ranges that were timed

    def cost(self) -> Array:
        """[i, j]: picoseconds of a stage of the kernels i to j - 1; infinite where there are none."""
        count = len(self.work_ps)
        work, weights = (np.concatenate([[0.0], np.cumsum(a)]) for a in (self.work_ps, self.weight_bytes))
        peak = np.zeros((count + 1, count + 1))
        for start in range(count):
            peak[start, start + 1 :] = np.maximum.accumulate(self.live[start:count])
        room = np.maximum(self.kept_capacity - peak, 0) * self.device.partitions
        streamed = np.maximum(weights[None, :] - weights[:, None] - room, 0)
        edge = self.crossing * PS_PER_SECOND / self.device.dram_bytes_per_second
        moved = streamed * PS_PER_SECOND / self.device.dram_bytes_per_second + edge[:, None] + edge[None, :]
        total = np.maximum(work[None, :] - work[:, None], moved)
        total[np.tril_indices(count + 1)] = np.inf
        for bound, time_ps in self.measured.items():
            total[bound] = time_ps
        return total

    def correct(self, start: int, end: int, expected_ps: float, measured_ps: float) -> None:
        """Takes from a measured stage its own time, and how far off its kernels' are for others of theirs."""
        self.measured[start, end] = measured_ps
        if expected_ps > 0:
            self.work_ps[start:end] *= measured_ps / expected_ps


def estimate(whole: Stage, room: Room, device: Device) -> Estimate:
    """The first estimate, from the one program that does it all."""
    emitted = emit_stage(whole, room, device, keep_weights=True)
    work = [_work_ps(emitted.program, nodes, device) for nodes in emitted.nodes]
    weights = [room.sizes.get(kernel, 0) * device.partitions for kernel in whole.kernels]
    live, crossing = _tensors(whole, room)
    fixed = room.zones.tensors_at - room.zones.resident_bytes
    capacity = device.sbuf_bytes_per_partition * (1 - 1 / _SLACK) - fixed
    return Estimate(np.array(work), np.array(weights, np.float64), live, crossing, capacity, device)


def _work_ps(program: Program, nodes: tuple[Node, ...], device: Device) -> float:
    """The busiest engine's time; transfers of weights don't count."""
    busy: dict[str, float] = {}
    for counts, instruction in walk(nodes):
        reads = [tile for _, kind, tile in instruction.tiles() if kind.role == "reads"]
        if any(isinstance(tile, DramTile) and program.tensors[tile.tensor].kind == "weight" for tile in reads):
            continue
        cycles = instruction.cost(device).busy_cycles
        ps = duration_ps(cycles, clock_hz(device, instruction.engine)) * prod(counts)
        busy[instruction.engine] = busy.get(instruction.engine, 0.0) + ps
    return max(busy.values(), default=0.0)


def _tensors(whole: Stage, room: Room) -> tuple[Array, Array]:
    """(bytes of a partition alive at each kernel, bytes that are made before a kernel and read by it or later)."""
    live, crossing = np.zeros(len(whole.kernels) + 1), np.zeros(len(whole.kernels) + 1)
    for tensor, (first, last) in _lives(whole).items():
        if tensor not in room.plan.in_dram:
            live[first : last + 1] += bytes_on_chip(whole.dtype(tensor), whole.partition_of[tensor], tensor.shape)
        crossing[first + 1 : last + 1] += tensor.elems * size_bytes(whole.dtype(tensor))
    return live, crossing


def _lives(whole: Stage) -> dict[Tensor, tuple[int, int]]:
    lives: dict[Tensor, tuple[int, int]] = {}
    for number, kernel in enumerate(whole.kernels):
        for tensor in (kernel.out, *kernel.sources()):
            lives[tensor] = (lives.get(tensor, (number, number))[0], number)
    return lives
