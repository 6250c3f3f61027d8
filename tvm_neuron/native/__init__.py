"""What the hardware model's host does in C++ on all its cores; NumPy does the same where the library isn't built."""

from tvm_neuron.native.assignment import assign
from tvm_neuron.native.library import native

__all__ = ["assign", "native"]
