"""What a compiled model costs: reports as values and timelines, computed from the NEFFs' programs alone.

`profile.tables` makes tables of a report; it is apart, since it needs rich, which a process that only runs does not.
"""

from tvm_neuron.profile.pipeline import interval_us, limits_us
from tvm_neuron.profile.report import EngineUse, Layer, Report, Subgraph, make_report
from tvm_neuron.profile.run import CpuPart, Part, Run, run_of
from tvm_neuron.profile.timeline import timeline
from tvm_neuron.profile.trace_file import trace_file, trace_writer
from tvm_neuron.profile.transfers import Transfer

__all__ = [
    "CpuPart",
    "EngineUse",
    "Layer",
    "Part",
    "Report",
    "Run",
    "Subgraph",
    "Transfer",
    "interval_us",
    "limits_us",
    "make_report",
    "run_of",
    "timeline",
    "trace_file",
    "trace_writer",
]
