"""The operators that kernels name, as `nl` and NumPy functions alike, and what the instruction set calls them."""

from typing import Any

from tvm_neuron.isa.functions import COMPARISONS, REDUCE_NAMES
from tvm_neuron.nki.source import wrong

# By the name of the function that is passed as `op=`.
ALU = {
    "add": "add", "sum": "add", "subtract": "subtract", "sub": "subtract", "multiply": "multiply", "mul": "multiply",
    "prod": "multiply", "divide": "divide", "true_divide": "divide", "maximum": "max", "max": "max", "amax": "max",
    "minimum": "min", "min": "min", "amin": "min", "power": "pow", "mod": "mod", "fmod": "fmod", "remainder": "mod",
    "equal": "is_equal", "not_equal": "not_equal", "greater": "is_gt", "greater_equal": "is_ge", "less": "is_lt",
    "less_equal": "is_le", "logical_and": "logical_and", "logical_or": "logical_or", "logical_xor": "logical_xor",
    "abs": "abs_max",
}  # fmt: skip
BITS = {
    "bitwise_and": "bitwise_and", "bitwise_or": "bitwise_or", "bitwise_xor": "bitwise_xor",
    "left_shift": "logical_shift_left", "right_shift": "logical_shift_right",
}  # fmt: skip
ACTIVATION = {
    "copy": "copy", "relu": "relu", "exp": "exp", "log": "log", "sqrt": "sqrt", "rsqrt": "rsqrt",
    "reciprocal": "reciprocal", "square": "square", "abs": "abs", "absolute": "abs", "sign": "sign",
    "sigmoid": "sigmoid", "tanh": "tanh", "sin": "sin", "arctan": "arctan", "erf": "erf", "gelu": "gelu",
    "gelu_apprx_tanh": "gelu_tanh", "silu": "silu", "softplus": "softplus", "mish": "mish",
    "gelu_apprx_sigmoid": "gelu_sigmoid", "silu_dx": "silu_dx", "gelu_apprx_sigmoid_dx": "gelu_sigmoid_dx",
}  # fmt: skip
TESTS = {name: op for name, op in ALU.items() if op in COMPARISONS}
REDUCTIONS = {name: op for name, op in ALU.items() if op in REDUCE_NAMES}


def named(op: Any, table: dict[str, str], what: str) -> str:
    """What the instruction set calls `op`.

    Raises:
        KernelError: it has no such operator.
    """
    name = op if isinstance(op, str) else getattr(op, "__name__", "")
    if name not in table:
        raise wrong(f"{what} has no operator {name or op}; it has {', '.join(table)}")
    return table[name]
