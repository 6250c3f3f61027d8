"""The hardware model: runs a program's data (`Machine`, for a pipeline `Cores`) and its clock (`time_program`)."""

from tvm_neuron.sim.cores import Cores
from tvm_neuron.sim.machine import Machine
from tvm_neuron.sim.result import Event, OriginTiming, Timing
from tvm_neuron.sim.timing import time_program, trace_program

__all__ = [
    "Cores",
    "Event",
    "Machine",
    "OriginTiming",
    "Timing",
    "time_program",
    "trace_program",
]
