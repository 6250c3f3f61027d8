"""roofline_us: the time that no program of a subgraph could beat on one core, however it is scheduled."""

import numpy as np

from tvm_neuron.neff import Neff
from tvm_neuron.program.traffic import dram_traffic

_US_PER_SECOND = 1e6


def roofline_us(neff: Neff, macs: int) -> float:
    """Weights, inputs and outputs once over the DRAM, or all multiply-accumulates at the array's peak, the longer one.

    A tensor of which a run moves only a part counts with that part, and weights count without their zeros and
    repetitions, which a program may store to suit the array, or not.
    """
    moved = [0] * len(neff.program.tensors)
    for index, _, size in dram_traffic(neff.program):
        moved[index] += size
    once = 0
    for tensor, size in zip(neff.program.tensors, moved, strict=True):
        if tensor.kind == "weight" and size:
            once += min(_nonzero_bytes(neff.weights[tensor.name]) // neff.repeats.get(tensor.name, 1), size)
        elif tensor.kind != "scratch":
            once += min(tensor.size_bytes, size)
    by_bytes = once / neff.device.dram_bytes_per_second
    return max(by_bytes, macs / neff.device.peak_macs_per_second) * _US_PER_SECOND


def _nonzero_bytes(array: np.ndarray) -> int:
    """Bytes of the values that are not zero; counted as bits, since NumPy knows no small floats."""
    return int(np.count_nonzero(array.view(f"u{array.itemsize}"))) * array.itemsize
