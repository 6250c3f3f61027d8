"""roofline_us, bound_us: times that no program of a subgraph could beat on one core, however it is scheduled."""

import numpy as np

from tvm_neuron.neff import Neff
from tvm_neuron.program.traffic import dram_traffic

_US_PER_SECOND, _NS_PER_US, _PS_PER_US = 1e6, 1e3, 1e6


def roofline_us(neff: Neff, macs: int) -> float:
    """Weights, inputs and outputs once over the DRAM, or all multiply-accumulates at the array's peak, the longer one.

    A tensor of which a run moves only a part counts with that part, and weights count without their zeros and
    repetitions, which a program may store to suit the array, or not.
    """
    return max(_once_us(neff), macs / neff.device.peak_macs_per_second * _US_PER_SECOND)


def bound_us(neff: Neff) -> float:
    """The same, with the start of transfers, and with all engines at work where each operator runs as suits it best.

    Data must have come before an engine begins, and results be stored after the last has ended; see
    `codegen.least_time` for what lies between.
    """
    start_us = neff.device.dma_start_ns / _NS_PER_US
    work_us = (neff.least_ps or 0) / _PS_PER_US
    by_engines = 2 * start_us + work_us if work_us else 0.0
    moved_us = _once_us(neff)
    return max(moved_us + (start_us if moved_us else 0.0), by_engines)


def _once_us(neff: Neff) -> float:
    """Weights, inputs and outputs once over the DRAM."""
    moved = [0] * len(neff.program.tensors)
    for index, _, size in dram_traffic(neff.program):
        moved[index] += size
    once = 0
    for tensor, size in zip(neff.program.tensors, moved, strict=True):
        if tensor.kind == "weight" and size:
            once += min(_nonzero_bytes(neff.weights[tensor.name]) // neff.repeats.get(tensor.name, 1), size)
        elif tensor.kind != "scratch":
            once += min(tensor.size_bytes, size)
    return once / neff.device.dram_bytes_per_second * _US_PER_SECOND


def _nonzero_bytes(array: np.ndarray) -> int:
    """Bytes of the values that are not zero; counted as bits, since NumPy knows no small floats."""
    return int(np.count_nonzero(array.view(f"u{array.itemsize}"))) * array.itemsize
