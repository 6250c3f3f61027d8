"""Which operators run on the NeuronCore, why the others do not, and the cut between the two."""

from tvm_neuron.partition.constraints import Match, Refusal, Verdict
from tvm_neuron.partition.coverage import check_must_compile
from tvm_neuron.partition.island import Island, Weigh
from tvm_neuron.partition.partition import Partition, partition
from tvm_neuron.partition.plan import CanSchedule, Where

__all__ = [
    "CanSchedule",
    "Island",
    "Match",
    "Partition",
    "Refusal",
    "Verdict",
    "Weigh",
    "Where",
    "check_must_compile",
    "partition",
]
