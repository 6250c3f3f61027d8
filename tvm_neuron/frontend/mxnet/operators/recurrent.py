"""RNN: layers of LSTM, GRU or plain cells, all of whose weights are one vector."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tvm_neuron.frontend.mxnet.attributes import Attributes
from tvm_neuron.frontend.mxnet.network import Network
from tvm_neuron.frontend.mxnet.operators.converter import Converter
from tvm_neuron.frontend.refused import RefusedError

_ORDERS = {"lstm": (0, 3, 1, 2), "gru": (1, 0, 2), "rnn_tanh": (0,), "rnn_relu": (0,)}
"""MXNet's gates in the order of ONNX's: of an LSTM i f c o as i o f c, of a GRU r z n as z r n."""

_OPERATORS = {"lstm": "LSTM", "gru": "GRU", "rnn_tanh": "RNN", "rnn_relu": "RNN"}


def _recurrent(net: Network, at: Attributes, data: str, weights: str, state: str, *more: str) -> list[str]:
    mode = at.text("mode", "", tuple(_OPERATORS))
    layers, size = at.whole("num_layers"), at.whole("state_size")
    is_lstm, ways = mode == "lstm", 2 if at.flag("bidirectional") else 1
    has_lengths = at.flag("use_sequence_length")
    at.skip("p", "lstm_state_clip_nan")
    for name in ("projection_size", "lstm_state_clip_min", "lstm_state_clip_max"):
        at.only(name)
    if len(more) != is_lstm + has_lengths:
        raise RefusedError(f"{mode} with {3 + len(more)} inputs, not {3 + is_lstm + has_lengths}")
    lengths = net.cast(more[-1], np.int32) if has_lengths else ""
    steps, batch, width = net.shape(data)
    parts = _Parts(net, weights, ways, size, _ORDERS[mode])
    taken = [*parts.matrices(layers, width)], [*parts.biases(layers)]
    parts.check_end()
    shape = (layers * ways, batch, size)
    states = [net.expanded(each, shape) for each in (state, *more[:is_lstm])]
    told: dict[str, Any] = {"hidden_size": size, "direction": "bidirectional" if ways == 2 else "forward"}
    if mode == "gru":
        told["linear_before_reset"] = 1
    if mode == "rnn_relu":
        told["activations"] = ["Relu"] * ways
    ends: list[list[str]] = [[] for _ in states]
    for number, ((inner, own), bias) in enumerate(zip(*taken, strict=True)):
        starts = [net.sliced(each, 0, number * ways, (number + 1) * ways) for each in states]
        found, *last = net.add(
            _OPERATORS[mode], data, inner, own, bias, lengths, *starts, results=1 + len(states), **told
        )
        data = net.reshaped(net.transposed(found, [0, 2, 1, 3]), [steps, batch, ways * size])
        for kept, each in zip(ends, last, strict=True):
            kept.append(each)
    if not at.flag("state_outputs"):
        return [data]
    return [data, *(net.add("Concat", *kept, axis=0) for kept in ends)]


class _Parts:
    """The vector of weights: matrices of all layers, each way's of inputs and of states, then biases alike."""

    def __init__(self, net: Network, weights: str, ways: int, size: int, order: Sequence[int]) -> None:
        self._net, self._weights, self._ways, self._size, self._order = net, weights, ways, size, order
        self._at = 0

    def matrices(self, layers: int, width: int) -> Iterator[tuple[str, str]]:
        """Of each layer those of inputs and those of states, as ONNX has them."""
        for layer in range(layers):
            columns = width if layer == 0 else self._ways * self._size
            found = [(self._part(columns), self._part(self._size)) for _ in range(self._ways)]
            yield self._joined([of for of, _ in found]), self._joined([of for _, of in found])

    def biases(self, layers: int) -> Iterator[str]:
        """Of each layer."""
        for _ in range(layers):
            rows = [self._net.add("Concat", self._part(), self._part(), axis=0) for _ in range(self._ways)]
            yield self._joined(rows)

    def check_end(self) -> None:
        """Refuses a vector of another length."""
        length = self._net.shape(self._weights)[0]
        if length != self._at:
            raise RefusedError(f"{length} weights where its sizes need {self._at}")

    def _part(self, *columns: int) -> str:
        """The next, its gates in ONNX's order."""
        shape = [len(self._order), self._size, *columns]
        length = int(np.prod(shape))
        part = self._net.sliced(self._weights, 0, self._at, self._at + length)
        if self._net.shape(part)[0] != length:
            raise RefusedError(f"{self._net.shape(self._weights)[0]} weights, which are fewer than its sizes need")
        self._at += length
        gates = self._net.add("Gather", self._net.reshaped(part, shape), self._net.ints(self._order), axis=0)
        return self._net.reshaped(gates, [shape[0] * shape[1], *columns])

    def _joined(self, parts: Sequence[str]) -> str:
        rows = [self._net.reshaped(part, [1, *self._net.shape(part)]) for part in parts]
        return str(self._net.add("Concat", *rows, axis=0))


OUTPUTS = {"RNN": ("_output", "_state_output", "_statecell_output")}
"""What MXNet adds to the operator's name, where its outputs are not numbered."""

CONVERTERS: dict[str, Converter] = {"RNN": _recurrent}
