"""Models into Relax modules: the importers, and the graph passes that run before the partition."""

from tvm_neuron.frontend.normalize import Params, normalize
from tvm_neuron.frontend.onnx import from_onnx

__all__ = ["Params", "from_onnx", "normalize"]
