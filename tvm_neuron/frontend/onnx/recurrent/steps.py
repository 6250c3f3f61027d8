"""The equations of one step of an RNN, GRU and LSTM."""

from collections.abc import Callable

from tvm_neuron.frontend.onnx.recurrent.layer import Layer
from tvm_neuron.frontend.onnx.recurrent.parts import cut
from tvm_neuron.frontend.onnx.values import Value

State = list[Value]
Step = Callable[[Layer, Value, State], State]


def _rnn_step(layer: Layer, projected: Value, state: State) -> State:
    product = layer.make("MatMul", [state[0], layer.recurrent])
    return [layer.activations[0](layer.clipped(layer.add(projected, product)))]


def _gru_step(layer: Layer, projected: Value, state: State) -> State:
    make, hidden = layer.make, layer.hidden
    (before,) = state
    gates = cut(make, layer.recurrent, 1, 0, 2 * hidden)
    last = cut(make, layer.recurrent, 1, 2 * hidden, 3 * hidden)
    both = layer.activations[0](
        layer.clipped(layer.add(layer.gates(projected, 0, 2), make("MatMul", [before, gates])))
    )
    update, reset = layer.gates(both, 0, 1), layer.gates(both, 1, 2)
    if layer.linear_before_reset:
        product = make("MatMul", [before, last])
        if layer.recurrent_bias is not None:
            product = layer.add(product, cut(make, layer.recurrent_bias, 0, 2 * hidden, 3 * hidden))
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


STEPS: dict[str, Step] = {"RNN": _rnn_step, "GRU": _gru_step, "LSTM": _lstm_step}
