"""`relay.frontend`: the importers, with Relay's signatures."""

from tvm_neuron.frontend import from_onnx

__all__ = ["from_onnx"]
