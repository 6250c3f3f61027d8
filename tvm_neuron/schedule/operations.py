"""operations: what the engines can compute, for rules, which may not look into the instruction set themselves."""

from tvm_neuron.isa.functions import ACTIVATION_NAMES, ALU_NAMES

ALU = frozenset(ALU_NAMES)
LOGIC = frozenset(("select", "and", "or", "not"))  # on comparisons, which give 0.0 or 1.0
ACTIVATION = frozenset(ACTIVATION_NAMES)
