"""ONNX models into Relax modules."""

from tvm_neuron.frontend.onnx.import_model import Params, from_onnx, input_names

__all__ = ["Params", "from_onnx", "input_names"]
