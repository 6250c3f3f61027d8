"""What a compiled model costs: reports as values, tables and timelines, computed from the NEFFs' programs alone."""

from tvm_neuron.profile.pipeline import limits_us
from tvm_neuron.profile.report import EngineUse, Layer, Report, Subgraph, make_report
from tvm_neuron.profile.tables import render
from tvm_neuron.profile.timeline import timeline
from tvm_neuron.profile.transfers import Transfer

__all__ = ["EngineUse", "Layer", "Report", "Subgraph", "Transfer", "limits_us", "make_report", "render", "timeline"]
