"""RNN, GRU and LSTM of static length, unrolled: the inputs' projection for all steps at once, then step by step."""

from collections.abc import Callable
from functools import partial

import numpy as np
import onnx
from onnx import helper

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.onnx.recurrent.activations import activation
from tvm_neuron.frontend.onnx.recurrent.layer import Layer
from tvm_neuron.frontend.onnx.recurrent.parts import cut, like, only, stacked, transposed
from tvm_neuron.frontend.onnx.recurrent.steps import STEPS, State, Step
from tvm_neuron.frontend.onnx.sequences import MakeNode
from tvm_neuron.frontend.onnx.values import Known, Value, dtype_of, shape_of

_DEFAULT_ACTIVATIONS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}
_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
_STATES = {"RNN": "h", "GRU": "h", "LSTM": "hc"}
def unroll_recurrent(node: onnx.NodeProto, operands: list[Value], make: MakeNode) -> list[Value]:
    """The outputs Y, Y_h (and Y_c) of an RNN, GRU or LSTM, all directions."""
    op = node.op_type
    attributes = {each.name: helper.get_attribute_value(each) for each in node.attribute}
    operands = [*operands, *[None] * (8 - len(operands))]
    x, w, r, bias, lengths, initial_h, initial_c, peepholes = operands
    batch_first = bool(attributes.get("layout", 0))
    if batch_first:
        x = make("Transpose", [x], perm=[1, 0, 2])
        swap = partial(transposed, make, perm=[1, 0, 2])
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
    activations = [activation(name, alphas, betas, make, dtype) for name in names]
    per_direction = len(_DEFAULT_ACTIVATIONS[op])
    hidden, gates = recurrent_shape[2], _GATES[op]
    results = []
    for index, is_reversed in enumerate(backwards):
        of_direction = partial(only, make, index=index)
        here = [_if_given(value, of_direction) for value in (w, r, bias, initial_h, initial_c, peepholes)]
        weights, recurrent, both_biases, start_h, start_c, peephole = here
        half = gates * hidden
        input_bias = _if_given(both_biases, partial(cut, make, axis=0, low=0, high=half))
        recurrent_bias = _if_given(both_biases, partial(cut, make, axis=0, low=half, high=2 * half))
        zeros = Known(np.zeros((shape[1], hidden), dtype))
        state = [zeros if value is None else value for value in (start_h, start_c)[: len(_STATES[op])]]
        layer = Layer(
            make, hidden, make("Transpose", [recurrent], perm=[1, 0]), recurrent_bias,
            activations[index * per_direction : (index + 1) * per_direction], dtype, attributes.get("clip"),
            _if_given(peephole, lambda p: [cut(make, p, 0, k * hidden, (k + 1) * hidden) for k in range(3)]),
            bool(attributes.get("linear_before_reset", 0)), bool(attributes.get("input_forget", 0)),
        )  # fmt: skip
        projected = _projected(layer, op, x, weights, input_bias)
        results.append(_run(layer, STEPS[op], projected, state, lengths, shape[0], is_reversed))
    return _joined(make, results, batch_first)


def _projected(layer: Layer, op: str, x: Value, weights: Value, bias: Value | None) -> Value:
    """[steps, batch, gates * hidden]: x @ W.T with every bias that does not depend on the state."""
    make = layer.make
    projected = make("MatMul", [x, make("Transpose", [weights], perm=[1, 0])])
    if bias is None or layer.recurrent_bias is None:
        return projected
    added = layer.recurrent_bias
    if op == "GRU" and layer.linear_before_reset:  # the last gate's recurrent bias is scaled by the reset gate
        kept = cut(make, added, 0, 0, 2 * layer.hidden)
        added = make("Concat", [kept, Known(np.zeros(layer.hidden, layer.dtype))], axis=0)
    return layer.add(projected, make("Add", [bias, added]))


def _run(
    layer: Layer, step: Step, projected: Value, state: State, lengths: Value | None, steps: int, is_reversed: bool
) -> tuple[list[Value], State]:
    """The hidden state after each step, in the order of time, and the last state."""
    make = layer.make
    shown: list[Value] = [None] * steps
    for time in range(steps - 1, -1, -1) if is_reversed else range(steps):
        fresh = step(layer, only(make, projected, time), state)
        shown[time] = fresh[0]
        if lengths is not None:
            runs = make("Unsqueeze", [make("Greater", [lengths, like(lengths, time)]), Known(np.array([1]))])
            fresh = [make("Where", [runs, new, old]) for new, old in zip(fresh, state, strict=True)]
            shown[time] = make("Where", [runs, shown[time], layer.number(0.0)])
        state = fresh
    if lengths is not None:  # an empty sequence ends in zeros, not in its initial state, as in onnxruntime
        any_step = make("Unsqueeze", [make("Greater", [lengths, like(lengths, 0)]), Known(np.array([1]))])
        state = [make("Where", [any_step, value, layer.number(0.0)]) for value in state]
    return shown, state


def _joined(make: MakeNode, results: list[tuple[list[Value], State]], batch_first: bool) -> list[Value]:
    """Y [steps, directions, batch, hidden] and the last states [directions, batch, hidden], or batch first."""
    whole = [stacked(make, shown, 0) for shown, _ in results]
    y = stacked(make, whole, 1)
    last = [stacked(make, list(values), 0) for values in zip(*(state for _, state in results), strict=True)]
    if batch_first:
        y = make("Transpose", [y], perm=[2, 0, 1, 3])
        last = [make("Transpose", [value], perm=[1, 0, 2]) for value in last]
    return [y, *last]


def _if_given(value: Value | None, then: Callable[[Value], Value]) -> Value | None:
    return None if value is None else then(value)


RECURRENT = dict.fromkeys(STEPS, unroll_recurrent)
"""By operator: (node, operands, maker of further nodes) to its outputs."""
