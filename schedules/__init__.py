"""The schedules that come with tvm_neuron: one rule an operator family, special ones first."""

from tvm_neuron_schedules.contraction import ContractionRule
from tvm_neuron_schedules.elementwise import ElementwiseRule
from tvm_neuron_schedules.gather import GatherRule
from tvm_neuron_schedules.movement import MovementRule
from tvm_neuron_schedules.product import ProductRule
from tvm_neuron_schedules.reduction import ReductionRule
from tvm_neuron_schedules.scan import ScanRule
from tvm_neuron_schedules.transposition import TranspositionRule

RULES = (
    ContractionRule(), ProductRule(), GatherRule(), ReductionRule(), ScanRule(), ElementwiseRule(),
    TranspositionRule(), MovementRule(),
)  # fmt: skip

__all__ = ["RULES"]
