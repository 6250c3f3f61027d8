"""One program on several cores (SPMD): what they exchange between its parts, its values and its time.

A `Plan` is a list of steps over named tensors: parts of the program, which every core runs on tensors of its own, cuts
of whole tensors over the cores and back, and exchanges, at which all cores wait for each other.
"""

from tvm_neuron.spmd.clock import StepTime, exchange_ps, joining, together_ps
from tvm_neuron.spmd.plan import Cut, Exchange, Join, Layout, Plan, Run
from tvm_neuron.spmd.values import cut, exchanged, join

__all__ = [
    "Cut",
    "Exchange",
    "Join",
    "Layout",
    "Plan",
    "Run",
    "StepTime",
    "cut",
    "exchange_ps",
    "exchanged",
    "join",
    "joining",
    "together_ps",
]
