"""What the hardware model's host does in C++ on all its cores; NumPy does the same where the library isn't built."""

from tvm_neuron.native.assignment import FEW_ELEMS, assign
from tvm_neuron.native.chain import is_chained, run_chain
from tvm_neuron.native.library import native
from tvm_neuron.native.tape import Tape, call, leave_out, recording

__all__ = ["FEW_ELEMS", "Tape", "assign", "call", "is_chained", "leave_out", "native", "recording", "run_chain"]
