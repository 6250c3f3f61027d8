"""The schedules that come with tvm_neuron: one rule an operator family, special ones first."""

from tvm_neuron_schedules.contraction import ContractionRule
from tvm_neuron_schedules.elementwise import ElementwiseRule
from tvm_neuron_schedules.movement import MovementRule
from tvm_neuron_schedules.reduction import ReductionRule

RULES = (ContractionRule(), ReductionRule(), ElementwiseRule(), MovementRule())

__all__ = ["RULES"]
