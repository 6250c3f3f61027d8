"""Where a model's numbers depart from float32: operator by operator, what the core's roundings explain, what not."""

from tvm_neuron.numerics.compare import compare
from tvm_neuron.numerics.comparison import Comparison
from tvm_neuron.numerics.rows import Finding, Nonfinite, OperatorError, Output, WhatIf

__all__ = ["Comparison", "Finding", "Nonfinite", "OperatorError", "Output", "WhatIf", "compare"]
