"""operations: what the engines can compute, for rules, which may not look into the instruction set themselves."""

from collections.abc import Callable

from tvm_neuron.isa.functions import ACTIVATION_NAMES, ALU_NAMES, BITWISE_NAMES

PARTITION_START_STEP = 32  # every access of an engine starts at a multiple of it

ALU = frozenset(ALU_NAMES)
BITWISE = frozenset(BITWISE_NAMES)  # on whole numbers of up to 32 bits, which need not be exact in float32
LOGIC = frozenset(("select", "and", "or", "not"))  # on comparisons, which give 0.0 or 1.0
ACTIVATION = frozenset(ACTIVATION_NAMES)

# Initial values that leave a reduction as it is; the lowest finite number of any float stands for minus infinity.
NEUTRAL: dict[str, Callable[[float], bool]] = {
    "add": lambda init: init == 0,
    "multiply": lambda init: init == 1,
    "max": lambda init: init <= -65504,
    "min": lambda init: init >= 65504,
}
