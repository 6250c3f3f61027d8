"""RNN, GRU and LSTM of static length, unrolled: the inputs' projection for all steps at once, then step by step."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import onnx
from onnx import helper

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.onnx.sequences import MakeNode
from tvm_neuron.frontend.onnx.values import Known, Value, dtype_of, shape_of

_DEFAULT_ACTIVATIONS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}
_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
_STATES = {"RNN": "h", "GRU": "h", "LSTM": "hc"}
_WITH_ALPHA = {
    "LeakyRelu": 0.01, "ThresholdedRelu": 1.0, "HardSigmoid": 0.2, "Elu": 1.0, "Affine": 1.0, "ScaledTanh": 1.0,
}  # fmt: skip
_WITH_BETA = {"HardSigmoid": 0.5, "Affine": 0.0, "ScaledTanh": 1.0}

Activation = Callable[[Value], Value]


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
        return _slice(self.make, value, 1, low * self.hidden, high * self.hidden)

    def add(self, *values: Value) -> Value:
        """The sum of all."""
        total = values[0]
        for value in values[1:]:
            total = self.make("Add", [total, value])
        return total


State = list[Value]
Step = Callable[[Layer, Value, State], State]


def _rnn_step(layer: Layer, projected: Value, state: State) -> State:
    product = layer.make("MatMul", [state[0], layer.recurrent])
    return [layer.activations[0](layer.clipped(layer.add(projected, product)))]


def _gru_step(layer: Layer, projected: Value, state: State) -> State:
    make, hidden = layer.make, layer.hidden
    (before,) = state
    gates = _slice(make, layer.recurrent, 1, 0, 2 * hidden)
    last = _slice(make, layer.recurrent, 1, 2 * hidden, 3 * hidden)
    both = layer.activations[0](
        layer.clipped(layer.add(layer.gates(projected, 0, 2), make("MatMul", [before, gates])))
    )
    update, reset = layer.gates(both, 0, 1), layer.gates(both, 1, 2)
    if layer.linear_before_reset:
        product = make("MatMul", [before, last])
        if layer.recurrent_bias is not None:
            product = layer.add(product, _slice(make, layer.recurrent_bias, 0, 2 * hidden, 3 * hidden))
        product = make("Mul", [reset, product])
    else:
        product = make("MatMul", [make("Mul", [reset, before]), last])
    candidate = layer.activations[1](layer.clipped(layer.add(layer.gates(projected, 2, 3), product)))
    kept = make("Mul", [update, make("Sub", [before, candidate])])  # (1 - z) * h + z * H = h + z * (H - h)
    return [layer.add(candidate, kept)]


def _lstm_step(layer: Layer, projected: Value, state: State) -> State:
    make = layer.make
    before, cell = state
    total = layer.add(projected, make("MatMul", [before, layer.recurrent]))
    gate = [layer.gates(total, index, index + 1) for index in range(4)]  # input, output, forget, cell

    def watched(value: Value, peephole: int, seen: Value) -> Value:
        if layer.peepholes is None:
            return value
        return layer.add(value, make("Mul", [layer.peepholes[peephole], seen]))

    squash, candidate_of, output_of = layer.activations
    taken = squash(layer.clipped(watched(gate[0], 0, cell)))
    if layer.input_forget:
        kept = make("Sub", [layer.number(1.0), taken])
    else:
        kept = squash(layer.clipped(watched(gate[2], 2, cell)))
    candidate = candidate_of(layer.clipped(gate[3]))
    cell = layer.add(make("Mul", [kept, cell]), make("Mul", [taken, candidate]))
    shown = squash(layer.clipped(watched(gate[1], 1, cell)))
    return [make("Mul", [shown, output_of(cell)]), cell]


_STEPS: dict[str, Step] = {"RNN": _rnn_step, "GRU": _gru_step, "LSTM": _lstm_step}


def unroll_recurrent(node: onnx.NodeProto, operands: list[Value], make: MakeNode) -> list[Value]:
    """The outputs Y, Y_h (and Y_c) of an RNN, GRU or LSTM, all directions."""
    op = node.op_type
    attributes = {each.name: helper.get_attribute_value(each) for each in node.attribute}
    operands = [*operands, *[None] * (8 - len(operands))]
    x, w, r, bias, lengths, initial_h, initial_c, peepholes = operands
    batch_first = bool(attributes.get("layout", 0))
    if batch_first:
        x = make("Transpose", [x], perm=[1, 0, 2])
        swap = partial(_transposed, make, perm=[1, 0, 2])
        initial_h, initial_c = _if_given(initial_h, swap), _if_given(initial_c, swap)
    shape = shape_of(x)
    recurrent_shape = shape_of(r)
    if shape is None or recurrent_shape is None:
        raise ModelError("its length is not known at compile time")
    direction = attributes.get("direction", b"forward").decode()
    backwards = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[direction]
    names = [name.decode() for name in attributes.get("activations", [])] or _DEFAULT_ACTIVATIONS[op] * len(backwards)
    alphas, betas = list(attributes.get("activation_alpha", [])), list(attributes.get("activation_beta", []))
    dtype = np.dtype(dtype_of(x))
    activations = [_activation(name, alphas, betas, make, dtype) for name in names]
    per_direction = len(_DEFAULT_ACTIVATIONS[op])
    hidden, gates = recurrent_shape[2], _GATES[op]
    results = []
    for index, is_reversed in enumerate(backwards):
        of_direction = partial(_only, make, index=index)
        here = [_if_given(value, of_direction) for value in (w, r, bias, initial_h, initial_c, peepholes)]
        weights, recurrent, both_biases, start_h, start_c, peephole = here
        half = gates * hidden
        input_bias = _if_given(both_biases, partial(_slice, make, axis=0, low=0, high=half))
        recurrent_bias = _if_given(both_biases, partial(_slice, make, axis=0, low=half, high=2 * half))
        zeros = Known(np.zeros((shape[1], hidden), dtype))
        state = [zeros if value is None else value for value in (start_h, start_c)[: len(_STATES[op])]]
        layer = Layer(
            make, hidden, make("Transpose", [recurrent], perm=[1, 0]), recurrent_bias,
            activations[index * per_direction : (index + 1) * per_direction], dtype, attributes.get("clip"),
            _if_given(peephole, lambda p: [_slice(make, p, 0, k * hidden, (k + 1) * hidden) for k in range(3)]),
            bool(attributes.get("linear_before_reset", 0)), bool(attributes.get("input_forget", 0)),
        )  # fmt: skip
        projected = _projected(layer, op, x, weights, input_bias)
        results.append(_run(layer, _STEPS[op], projected, state, lengths, shape[0], is_reversed))
    return _joined(make, results, batch_first)


def _projected(layer: Layer, op: str, x: Value, weights: Value, bias: Value | None) -> Value:
    """[steps, batch, gates * hidden]: x @ W.T with every bias that does not depend on the state."""
    make = layer.make
    projected = make("MatMul", [x, make("Transpose", [weights], perm=[1, 0])])
    if bias is None or layer.recurrent_bias is None:
        return projected
    added = layer.recurrent_bias
    if op == "GRU" and layer.linear_before_reset:  # the last gate's recurrent bias is scaled by the reset gate
        kept = _slice(make, added, 0, 0, 2 * layer.hidden)
        added = make("Concat", [kept, Known(np.zeros(layer.hidden, layer.dtype))], axis=0)
    return layer.add(projected, make("Add", [bias, added]))


def _run(
    layer: Layer, step: Step, projected: Value, state: State, lengths: Value | None, steps: int, is_reversed: bool
) -> tuple[list[Value], State]:
    """The hidden state after each step, in the order of time, and the last state."""
    make = layer.make
    shown: list[Value] = [None] * steps
    for time in range(steps - 1, -1, -1) if is_reversed else range(steps):
        fresh = step(layer, _only(make, projected, time), state)
        shown[time] = fresh[0]
        if lengths is not None:
            runs = make("Unsqueeze", [make("Greater", [lengths, _like(lengths, time)]), Known(np.array([1]))])
            fresh = [make("Where", [runs, new, old]) for new, old in zip(fresh, state, strict=True)]
            shown[time] = make("Where", [runs, shown[time], layer.number(0.0)])
        state = fresh
    return shown, state


def _joined(make: MakeNode, results: list[tuple[list[Value], State]], batch_first: bool) -> list[Value]:
    """Y [steps, directions, batch, hidden] and the last states [directions, batch, hidden], or batch first."""
    whole = [_stacked(make, shown, 0) for shown, _ in results]
    y = _stacked(make, whole, 1)
    last = [_stacked(make, list(values), 0) for values in zip(*(state for _, state in results), strict=True)]
    if batch_first:
        y = make("Transpose", [y], perm=[2, 0, 1, 3])
        last = [make("Transpose", [value], perm=[1, 0, 2]) for value in last]
    return [y, *last]


def _activation(name: str, alphas: list[float], betas: list[float], make: MakeNode, dtype: np.dtype[Any]) -> Activation:
    """The activation of that name, taking its parameters from the front of the lists."""
    alpha = (alphas.pop(0) if alphas else _WITH_ALPHA[name]) if name in _WITH_ALPHA else 0.0
    beta = (betas.pop(0) if betas else _WITH_BETA[name]) if name in _WITH_BETA else 0.0

    def number(value: float) -> Value:
        return Known(np.array(value, dtype))

    match name:
        case "Affine":
            return lambda x: make("Add", [make("Mul", [x, number(alpha)]), number(beta)])
        case "ScaledTanh":
            return lambda x: make("Mul", [make("Tanh", [make("Mul", [x, number(beta)])]), number(alpha)])
        case "HardSigmoid":
            return lambda x: make("HardSigmoid", [x], alpha=alpha, beta=beta)
        case "LeakyRelu" | "ThresholdedRelu" | "Elu":
            return lambda x: make(name, [x], alpha=alpha)
        case "Relu" | "Tanh" | "Sigmoid" | "Softsign" | "Softplus":
            return lambda x: make(name, [x])
        case _:
            raise ModelError(f"its activation '{name}' is none that the standard names")


def _if_given(value: Value | None, then: Callable[[Value], Value]) -> Value | None:
    return None if value is None else then(value)


def _transposed(make: MakeNode, value: Value, perm: list[int]) -> Value:
    return make("Transpose", [value], perm=perm)


def _slice(make: MakeNode, value: Value, axis: int, low: int, high: int) -> Value:
    bounds = [Known(np.array([number], np.int64)) for number in (low, high, axis)]
    return make("Slice", [value, *bounds])


def _only(make: MakeNode, value: Value, index: int) -> Value:
    """value[index] along the first axis."""
    return make("Squeeze", [_slice(make, value, 0, index, index + 1), Known(np.array([0]))])


def _stacked(make: MakeNode, values: list[Value], axis: int) -> Value:
    widened = [make("Unsqueeze", [value, Known(np.array([axis]))]) for value in values]
    return make("Concat", widened, axis=axis) if len(widened) > 1 else widened[0]


def _like(value: Value, number: int) -> Value:
    return Known(np.array(number, dtype_of(value)))


RECURRENT = dict.fromkeys(_STEPS, unroll_recurrent)
"""By operator: (node, operands, maker of further nodes) to its outputs."""
