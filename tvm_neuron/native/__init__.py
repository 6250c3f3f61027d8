"""What the host does in C++: the hardware model's arithmetic, on all cores, and what is done for every instruction.

Python does the same where the library isn't built.
"""

from tvm_neuron.native.assignment import FEW_ELEMS, assign
from tvm_neuron.native.chain import is_chained, run_chain
from tvm_neuron.native.instructions import Tiles, Timed, Times, find_waits, run_clock
from tvm_neuron.native.library import native
from tvm_neuron.native.tape import Tape, call, leave_out, recording

__all__ = [
    "FEW_ELEMS",
    "Tape",
    "Tiles",
    "Timed",
    "Times",
    "assign",
    "call",
    "find_waits",
    "is_chained",
    "leave_out",
    "native",
    "recording",
    "run_chain",
    "run_clock",
]
