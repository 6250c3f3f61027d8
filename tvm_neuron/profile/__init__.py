"""What a compiled model costs: reports as values and timelines, computed from the NEFFs' programs alone.

`profile.tables` makes tables of a report; it is apart, since it needs rich, which a process that only runs does not.
"""

from tvm_neuron.profile.pipeline import limits_us
from tvm_neuron.profile.report import EngineUse, Layer, Report, Subgraph, make_report
from tvm_neuron.profile.timeline import timeline
from tvm_neuron.profile.transfers import Transfer

__all__ = ["EngineUse", "Layer", "Report", "Subgraph", "Transfer", "limits_us", "make_report", "timeline"]
