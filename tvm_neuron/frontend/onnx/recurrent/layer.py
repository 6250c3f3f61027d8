"""Layer: one direction of an RNN, GRU or LSTM, and what all their equations share."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tvm_neuron.frontend.onnx.recurrent.activations import Activation
from tvm_neuron.frontend.onnx.recurrent.parts import cut
from tvm_neuron.frontend.onnx.sequences import MakeNode
from tvm_neuron.frontend.onnx.values import Known, Value


@dataclass
class Layer:
    """One direction of one recurrent node: how to make nodes, its weights and what changes its equations."""

    make: MakeNode
    hidden: int
    recurrent: Value  # [hidden, gates * hidden], transposed for the product
    recurrent_bias: Value | None  # [gates * hidden]
    activations: list[Activation]
    dtype: np.dtype[Any]
    clip: float | None
    peepholes: list[Value] | None = None
    linear_before_reset: bool = False
    input_forget: bool = False

    def number(self, value: float) -> Value:
        """A constant of the layer's dtype."""
        return Known(np.array(value, self.dtype))

    def clipped(self, value: Value) -> Value:
        """What an activation takes: within the threshold, if one is given."""
        if self.clip is None:
            return value
        return self.make("Clip", [value, self.number(-self.clip), self.number(self.clip)])

    def gates(self, value: Value, low: int, high: int) -> Value:
        """The columns of gates `low` to `high` of [batch, gates * hidden]."""
        return cut(self.make, value, 1, low * self.hidden, high * self.hidden)

    def add(self, *values: Value) -> Value:
        """The sum of all."""
        total = values[0]
        for value in values[1:]:
            total = self.make("Add", [total, value])
        return total
