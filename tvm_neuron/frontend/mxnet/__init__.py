"""Symbols of MXNet (`-symbol.json`) and weights (`.params`) as ONNX, and so Relax modules; MXNet is not needed."""

from tvm_neuron.frontend.mxnet.files import files_of, is_mxnet, read
from tvm_neuron.frontend.mxnet.from_mxnet import from_mxnet
from tvm_neuron.frontend.mxnet.to_onnx import described, to_onnx

__all__ = ["described", "files_of", "from_mxnet", "is_mxnet", "read", "to_onnx"]
