"""ONNX models into Relax modules."""

from tvm_neuron.frontend.onnx.import_model import Params, from_onnx

__all__ = ["Params", "from_onnx"]
