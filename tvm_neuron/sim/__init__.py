"""The hardware model: runs a program's data (`Machine`, for a pipeline `Cores`) and its clock (`time_program`)."""

from tvm_neuron.sim.cores import Cores
from tvm_neuron.sim.machine import Machine
from tvm_neuron.sim.result import Event, OriginTiming, Timing
from tvm_neuron.sim.timing import time_program, trace_program
from tvm_neuron.sim.trace import Track, chrome_trace

__all__ = [
    "Cores",
    "Event",
    "Machine",
    "OriginTiming",
    "Timing",
    "Track",
    "chrome_trace",
    "time_program",
    "trace_program",
]
