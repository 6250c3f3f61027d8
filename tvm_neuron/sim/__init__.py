"""The hardware model: runs a program's data (`Machine`, for a pipeline `Cores`) and its clock (`time_program`).

`interval_ps` and `ends_ps` are the clock of several cores, which share their chip's DRAM and the links between chips.
"""

from tvm_neuron.sim.cores import Cores
from tvm_neuron.sim.machine import Machine
from tvm_neuron.sim.result import Event, OriginTiming, Timing
from tvm_neuron.sim.timing import time_program, trace_program
from tvm_neuron.sim.together import Line, ends_ps, interval_ps

__all__ = [
    "Cores",
    "Event",
    "Line",
    "Machine",
    "OriginTiming",
    "Timing",
    "ends_ps",
    "interval_ps",
    "time_program",
    "trace_program",
]
