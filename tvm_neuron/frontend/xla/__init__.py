"""StableHLO and HLO, which JAX and XLA's other front ends write, into ONNX, and so into Relax modules.

jaxlib, whose bindings read it, is imported only when a model of it is given.
"""

from tvm_neuron.frontend.xla.parts import Parts
from tvm_neuron.frontend.xla.read import is_xla, parse, read
from tvm_neuron.frontend.xla.to_onnx import to_onnx

__all__ = ["Parts", "is_xla", "parse", "read", "to_onnx"]
