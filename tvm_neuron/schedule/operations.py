"""operations: what the engines can compute, for rules, which may not look into the instruction set themselves."""

from tvm_neuron.isa.functions import ACTIVATION_NAMES, ALU_NAMES

ALU = frozenset(ALU_NAMES)
ACTIVATION = frozenset(ACTIVATION_NAMES)
