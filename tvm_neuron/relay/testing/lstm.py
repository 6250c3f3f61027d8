"""A recurrent network of LSTM cells, unrolled."""

from typing import Any

from tvm_neuron.relay.analysis import free_vars
from tvm_neuron.relay.ir.expr import Call, Function, Let, Tuple, TupleGetItem, Var
from tvm_neuron.relay.ir.ty import TensorType, TupleType
from tvm_neuron.relay.op import namespace
from tvm_neuron.relay.testing.init import create_workload
from tvm_neuron.relay.testing.layers import dense_add_bias

_top = namespace()


def lstm_cell(num_hidden: int, batch_size: int = 1, dtype: str = "float32", name: str = "") -> Function:
    """A function of inputs, a tuple of two states, and weights: the output and the new states."""
    state = TensorType((batch_size, num_hidden), dtype)
    matrix, vector = TensorType((4 * num_hidden, num_hidden), dtype), TensorType((4 * num_hidden,), dtype)
    inputs, states = Var("inputs", state), Var("states", TupleType([state, state]))
    weights = {side: (Var(f"{side}_weight", matrix), Var(f"{side}_bias", vector)) for side in ("i2h", "h2h")}
    from_input = dense_add_bias(inputs, f"{name}i2h", *weights["i2h"], units=4 * num_hidden)
    from_state = dense_add_bias(TupleGetItem(states, 0), f"{name}h2h", *weights["h2h"], units=4 * num_hidden)
    gates = _top["split"](from_input + from_state, 4, axis=1)
    taken, kept, shown = (_top["sigmoid"](gates[index]) for index in (0, 1, 3))
    cell = kept * TupleGetItem(states, 1) + taken * _top["tanh"](gates[2])
    output = shown * _top["tanh"](cell)
    return Function([inputs, states, *weights["i2h"], *weights["h2h"]], Tuple([output, Tuple([output, cell])]))


def get_net(iterations: int, num_hidden: int, batch_size: int = 1, dtype: str = "float32") -> Function:
    """The network as a function; every iteration has its own `data` and weights."""
    state = TensorType((batch_size, num_hidden), dtype)
    matrix, vector = TensorType((4 * num_hidden, num_hidden), dtype), TensorType((4 * num_hidden,), dtype)
    zeros = _top["zeros"]((batch_size, num_hidden), dtype)
    states: Any = Tuple([zeros, zeros])
    bound: list[tuple[Var, Any]] = []
    for step in range(iterations):
        weights = [
            Var(f"{side}_{step}_{kind}", ty)
            for side in ("i2h", "h2h") for kind, ty in (("weight", matrix), ("bias", vector))
        ]  # fmt: skip
        cell = lstm_cell(num_hidden, batch_size, dtype, f"lstm_{step}")
        call = Var(f"call_{step}", TupleType([state, TupleType([state, state])]))
        bound.append((call, Call(cell, [Var("data", state), states, *weights])))
        states = TupleGetItem(call, 1)
    body: Any = TupleGetItem(bound[-1][0], 0)
    for variable, value in reversed(bound):
        body = Let(variable, value, body)
    return Function(free_vars(body), body, state)


def get_workload(iterations: int, num_hidden: int, batch_size: int = 1, dtype: str = "float32") -> Any:
    """The module of the network, and its weights."""
    return create_workload(get_net(iterations, num_hidden, batch_size, dtype))
