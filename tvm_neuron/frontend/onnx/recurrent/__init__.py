"""RNN, GRU and LSTM of static length as simpler nodes."""

from tvm_neuron.frontend.onnx.recurrent.unroll import RECURRENT

__all__ = ["RECURRENT"]
