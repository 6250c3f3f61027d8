"""What the hardware model's host does in C++ on all its cores; NumPy does the same where the library isn't built."""

from tvm_neuron.native.assignment import FEW_ELEMS, assign
from tvm_neuron.native.chain import is_chained, run_chain
from tvm_neuron.native.library import native

__all__ = ["FEW_ELEMS", "assign", "is_chained", "native", "run_chain"]
