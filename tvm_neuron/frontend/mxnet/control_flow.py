"""foreach, while_loop and cond of `mx.sym.contrib`: rounds are written out, of a branch both sides and a choice.

The number of rounds is known: of a foreach from its data, of a while_loop at most `max_iterations`, after whose end its
states stay and further rows of its outputs are zeros.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tvm_neuron.frontend.mxnet.attributes import Attributes
from tvm_neuron.frontend.mxnet.network import Network
from tvm_neuron.frontend.mxnet.symbol import Symbol
from tvm_neuron.frontend.refused import RefusedError

WriteOut = Callable[[Symbol, Sequence[str], str], list[str]]
"""(subgraph, the tensors of its variables in order, what begins the names of its operators) to its heads."""

ControlFlow = Callable[[Network, Attributes, Sequence[Symbol], Sequence[str], WriteOut], list[str]]

_MOST_NODES = 50_000  # of a loop that is written out


def _foreach(
    net: Network, at: Attributes, bodies: Sequence[Symbol], inputs: Sequence[str], write: WriteOut
) -> list[str]:
    (body,) = bodies
    data_places, state_places = at.sizes("in_data_locs", ()), at.sizes("in_state_locs", ())
    places = [*data_places, *state_places, *at.sizes("remain_locs", ())]
    outputs = at.whole("num_out_data")
    at.skip("num_outputs")
    data, rest = inputs[: len(data_places)], inputs[len(data_places) + len(state_places) :]
    states = list(inputs[len(data_places) : len(data_places) + len(state_places)])
    rounds = {net.shape(each)[0] for each in data}
    if len(rounds) != 1 or not min(rounds):
        raise RefusedError(f"its data have {sorted(rounds)} rows, of which there must be as many in each, and some")
    rows: list[list[str]] = []
    for number in range(rounds.pop()):
        now = [_row(net, each, number) for each in data]
        found = write(body, _placed([*now, *states, *rest], places), f".{number}")
        states = found[outputs:]
        rows.append([_with_rows(net, each) for each in found[:outputs]])
        _check_size(net)
    return [*_stacked(net, rows), *states]


def _while_loop(
    net: Network, at: Attributes, bodies: Sequence[Symbol], inputs: Sequence[str], write: WriteOut
) -> list[str]:
    condition, body = bodies
    asked, taken = at.sizes("cond_input_locs", ()), at.sizes("func_input_locs", ())
    varying = [taken[place] for place in at.sizes("func_var_locs", ())]  # of the inputs, those that change
    outputs = at.whole("num_out_data")
    at.skip("num_outputs")
    given = list(inputs)
    goes_on, rows = "", list[list[str]]()
    for number in range(at.whole("max_iterations")):
        (holds,) = write(condition, [given[place] for place in asked], f".{number}.condition")
        truth = net.reshaped(net.cast(holds, np.bool_), ())
        goes_on = str(net.add("And", goes_on, truth)) if goes_on else truth
        found = write(body, [given[place] for place in taken], f".{number}")
        rows.append([_with_rows(net, _chosen(net, goes_on, each, _zero(net, each))) for each in found[:outputs]])
        for place, value in zip(varying, found[outputs:], strict=True):
            given[place] = _chosen(net, goes_on, value, given[place])
        _check_size(net)
    return [*_stacked(net, rows), *(given[place] for place in varying)]


def _cond(net: Network, at: Attributes, bodies: Sequence[Symbol], inputs: Sequence[str], write: WriteOut) -> list[str]:
    names = ("cond", "then", "else")
    at.skip("num_outputs")
    (holds,), first, second = (
        write(body, [inputs[place] for place in at.sizes(f"{name}_input_locs", ())], f".{name}")
        for name, body in zip(names, bodies, strict=True)
    )
    truth = net.reshaped(net.cast(holds, np.bool_), ())
    return [_chosen(net, truth, one, other) for one, other in zip(first, second, strict=True)]


def _placed(tensors: Sequence[str], places: Sequence[int]) -> list[str]:
    """The tensors in the order of the subgraph's variables."""
    if sorted(places) != [*range(len(tensors))]:
        raise RefusedError(f"its {len(tensors)} inputs are at {list(places)} of its subgraph's")
    return [tensor for _, tensor in sorted(zip(places, tensors, strict=True))]


def _row(net: Network, data: str, number: int) -> str:
    return net.reshaped(net.sliced(data, 0, number, number + 1), net.shape(data)[1:])


def _with_rows(net: Network, tensor: str) -> str:
    return net.reshaped(tensor, (1, *net.shape(tensor)))


def _stacked(net: Network, rows: Sequence[Sequence[str]]) -> list[str]:
    return [str(net.add("Concat", *each, axis=0)) for each in zip(*rows, strict=True)]


def _zero(net: Network, like: str) -> str:
    return net.constant(np.zeros((), net.dtype(like)))


def _chosen(net: Network, truth: str, one: str, other: str) -> str:
    return str(net.add("Where", truth, one, other))


def _check_size(net: Network) -> None:
    if len(net.nodes) > _MOST_NODES:
        raise RefusedError(f"its rounds, written out, are more than {_MOST_NODES} operators")


CONTROL_FLOW: Mapping[str, ControlFlow] = {"_foreach": _foreach, "_while_loop": _while_loop, "_cond": _cond}
