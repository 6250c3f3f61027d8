"""least_ps: the time for which some engine is at work whatever the program, each operator run where that suits best.

All costs are the least there are: full partitions, no step of an instruction wasted. Work that may be done in two ways
is shared out so that the busiest engine has least to do, which is a linear programme: minimise t, where each engine's
share of all work takes at most t. Its dual needs no solver: prices of the engines' time that add up to one, at which
every operator takes its cheaper way, cost no more than the optimum, and the highest such cost is the optimum. So any
prices give a bound, and a few hundred rounds that raise the price of what is busy come close to the best.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.codegen.emit.stay_in_psum import may_stay
from tvm_neuron.hw import Device
from tvm_neuron.schedule.expr import Apply, Expr, axes_of, loads
from tvm_neuron.schedule.kernel import ACCUMULATOR, ROOT, Kernel, Reduction, Statistics
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.uses import readers_of

_PS_PER_SECOND = 10**12
_OPERATIONS = 3  # of one instruction at most: ACT multiplies, adds and takes a function
_SUMMED = 2  # bfloat16 numbers that POOL reduces in a cycle
_ROUNDS = 300
_PE, _PSUM, _POOL, _VECTOR = range(4)  # whose time is priced; the last one is that of ACT and POOL together
Costs = NDArray[np.float64]  # seconds of each of these


def least_ps(kernels: Sequence[Kernel], macs: Mapping[Kernel, float], device: Device) -> int:
    """Picoseconds from when the first data are in SBUF until the last results are; `macs` as of `kernel_macs`."""
    work = _Work(kernels, macs, device)
    return int(max(shared_out(*work.ways(), work.further()), work.longest_path()) * _PS_PER_SECOND)


def shared_out(here: Costs, there: Costs, fixed: Costs) -> float:
    """The least time of the busiest engine; each row is done in one way or the other, in any proportion."""
    best = 0.0
    prices = np.ones(len(fixed)) / len(fixed)
    for number in range(len(fixed) + _ROUNDS):
        now = np.eye(len(fixed))[number] if number < len(fixed) else prices
        load = np.where((here @ now <= there @ now)[:, None], here, there).sum(axis=0) + fixed
        best = max(best, float(load @ now))
        if number >= len(fixed) and load.any():
            prices = prices * np.exp(load / load.max() / (1 + number) ** 0.5)
            prices /= prices.sum()
    return best


class _Work:
    """What kernels ask of the engines."""

    def __init__(self, kernels: Sequence[Kernel], macs: Mapping[Kernel, float], device: Device) -> None:
        self.device, self.kernels = device, [kernel for kernel in _of_data(kernels) if not kernel.by_dma]
        self.readers = readers_of(self.kernels)
        self.macs = {kernel: macs[kernel] for kernel in self.kernels if macs.get(kernel)}
        rates_hz = (device.act_clock_hz, device.pool_clock_hz * device.narrow_rate)  # elements of a lane, at best
        self.lanes_hz = device.partitions * sum(rates_hz)
        self.psum_hz = device.partitions * (max(rates_hz) if device.psum_accesses == 1 else sum(rates_hz))
        self.made = {kernel: _elems(kernel) for kernel in self.kernels}
        self.taken = self._taken_out()

    def _taken_out(self) -> dict[Kernel, float]:
        """Numbers that must leave PSUM; what adds up to one tensor does so once, what is only reduced does by that.

        What may stay there leaves by the arithmetic that reads it, two numbers at a time at most.
        """
        written = Counter[Tensor]()
        for kernel in self.macs:
            written[kernel.out] += self.made[kernel]
        found: dict[Kernel, float] = {}
        for kernel, macs in self.macs.items():
            is_reduced = all(isinstance(other.root, Reduction) for other in self.readers.get(kernel.out, [kernel]))
            share = min(1.0, kernel.out.elems / written[kernel.out])
            at_once = 2 if self._may_stay(kernel) else 1
            leaves = min(self.made[kernel] * share, macs) / at_once
            found[kernel] = 0.0 if kernel.expr is ROOT and is_reduced else leaves
        return found

    def _may_stay(self, kernel: Kernel) -> bool:
        return may_stay(kernel, self.readers.get(kernel.out, []))

    def ways(self) -> tuple[Costs, Costs]:
        """Of each sum of products or reduction, what it takes in one way and in the other."""
        rows = [self._product(kernel, macs) for kernel, macs in self.macs.items()]
        rows += [self._reduction(kernel, kernel.root) for kernel in self.kernels if isinstance(kernel.root, Reduction)]
        here, there = (np.array([row[way] for row in rows]).reshape(-1, 4) for way in range(2))
        return here, there

    def _product(self, kernel: Kernel, macs: float) -> tuple[list[float], list[float]]:
        """By the PE array, whose columns hold one result each, and then out of PSUM; or in one cycle of a lane each."""
        device, taken = self.device, self.taken[kernel]
        results = min(self.made[kernel], macs)
        pe = max(results / device.pe_columns / device.pe_clock_hz, macs / device.peak_macs_per_second)
        psum = taken / self.psum_hz
        return [pe, psum, 0.0, taken / self.lanes_hz], [0.0, 0.0, 0.0, macs / self.lanes_hz]

    def _reduction(self, kernel: Kernel, root: Reduction) -> tuple[list[float], list[float]]:
        """By POOL; a sum also by the PE array, as either of its operands."""
        device = self.device
        read = self.made[kernel] * prod(axis.extent for axis in root.axes)
        cycles = max(min(read, root.load.tensor.elems) / _SUMMED, self.made[kernel]) / device.partitions
        by_pool = [0.0, 0.0, cycles / device.pool_clock_hz, cycles * device.partitions / self.lanes_hz]
        if root.combine != "add" and not isinstance(root, Statistics):
            return by_pool, by_pool
        both = device.pe_rows * (1 + device.pe_columns / min(device.matmul_min_cycles, device.pe_columns))
        return by_pool, [min(read, root.load.tensor.elems) / both / device.pe_clock_hz, 0.0, 0.0, 0.0]

    def further(self) -> Costs:
        """Arithmetic for which the instructions that take results out of PSUM have no room."""
        operations = sum(map(_operations, self.kernels)) / _OPERATIONS
        return np.array([0.0, 0.0, 0.0, max(0.0, operations - sum(self.taken.values())) / self.lanes_hz])

    def longest_path(self) -> float:
        """Seconds of instructions that each need the result of the one before, one for each kernel on the way.

        What reads a tensor may need no more than its first writer's part.
        """
        device = self.device
        fastest = max(device.act_clock_hz, device.pool_clock_hz)
        each = (device.elementwise_min_cycles + device.instruction_latency_cycles) / fastest
        reduced = device.instruction_latency_cycles / fastest
        ends: dict[Tensor, float] = {}
        for kernel in self.kernels:
            is_brought_out = kernel in self.macs and not self._may_stay(kernel)
            own = each if is_brought_out else reduced if isinstance(kernel.root, Reduction) else 0.0
            begin = max((ends.get(tensor, 0.0) for tensor in kernel.sources() if tensor is not kernel.out), default=0.0)
            ends[kernel.out] = min(ends.get(kernel.out, begin + own), begin + own)
        return max(ends.values(), default=0.0)


def _of_data(kernels: Sequence[Kernel]) -> list[Kernel]:
    """Those that wait for data; what is made of numbers alone, as where no element of an input comes, needn't."""
    waits: list[Kernel] = []
    of_numbers: set[Tensor] = set()
    for kernel in kernels:
        constants = any(load.tensor.value is not None for load in loads(kernel.expr) if load is not ROOT)
        if constants or not of_numbers.issuperset(kernel.sources()):
            waits.append(kernel)
            of_numbers.discard(kernel.out)
        elif all(kernel.out is not other.out for other in waits):
            of_numbers.add(kernel.out)
    return waits


def _elems(kernel: Kernel) -> int:
    return kernel.channel.extent * prod(axis.extent for axis in kernel.free)


def _operations(kernel: Kernel) -> int:
    """Operations of the arithmetic on the way out; what is the same along an axis is computed once along it."""
    loops = {kernel.channel, *kernel.free}

    def count(expr: Expr) -> int:
        along = set(axes_of(expr)) & loops
        if any(load.tensor is ACCUMULATOR for load in loads(expr)):
            along = loops
        return prod(axis.extent for axis in along)

    return sum(count(part) for part in set(_applied(kernel.expr)))


def _applied(expr: Expr) -> list[Apply]:
    return [expr, *(part for arg in expr.args for part in _applied(arg))] if isinstance(expr, Apply) else []
