"""StableHLO, which JAX and XLA's other front ends write, into ONNX, and so into Relax modules.

jaxlib, whose bindings read it, is imported only when a model of it is given.
"""

from tvm_neuron.frontend.xla.parts import Parts
from tvm_neuron.frontend.xla.read import SUFFIXES, parse, read
from tvm_neuron.frontend.xla.to_onnx import to_onnx

__all__ = ["SUFFIXES", "Parts", "parse", "read", "to_onnx"]
