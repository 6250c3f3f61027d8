"""`relay.frontend`: the importers, with Relay's signatures."""

from tvm_neuron.frontend import from_onnx
from tvm_neuron.frontend.torch import from_pytorch

__all__ = ["from_onnx", "from_pytorch"]
