"""Products of matrices: dense layers, dot products in batches, attention with heads side by side."""

from math import prod, sqrt

from tvm_neuron.frontend.mxnet.attributes import Attributes
from tvm_neuron.frontend.mxnet.network import Network
from tvm_neuron.frontend.mxnet.operators.converter import Converter
from tvm_neuron.frontend.refused import RefusedError


def _dense(net: Network, at: Attributes, data: str, weight: str, bias: str = "") -> str:
    at.skip("num_hidden")  # as many as the weights have rows
    is_without = at.flag("no_bias")
    if is_without == bool(bias):
        raise RefusedError(f"no_bias = {is_without} {'with' if bias else 'without'} a bias")
    rows = data
    if at.flag("flatten", True):
        rows = net.add("Flatten", data, axis=1) if net.rank(data) != 2 else data
    if net.rank(rows) == 2:
        return str(net.add("Gemm", rows, weight, *[bias] * bool(bias), transB=1))
    found = net.add("MatMul", rows, net.transposed(weight, [1, 0]))
    return str(net.add("Add", found, bias) if bias else found)


def _dot(net: Network, at: Attributes, left: str, right: str) -> str:
    """The last dimension of the first with the first of the second."""
    at.only("forward_stype", "default")
    left = _turned_whole(net, left, at.flag("transpose_a"))
    right = _turned_whole(net, right, at.flag("transpose_b"))
    first, second = net.shape(left), net.shape(right)
    rows = net.reshaped(left, [prod(first[:-1]), first[-1]])
    columns = net.reshaped(right, [second[0], prod(second[1:])])
    return net.reshaped(net.add("MatMul", rows, columns), [*first[:-1], *second[1:]] or [1])


def _turned_whole(net: Network, data: str, is_turned: bool) -> str:
    if is_turned and net.rank(data) > 2:
        raise RefusedError("a transposed operand of more than two dimensions")
    return net.transposed(data, [*range(net.rank(data))][::-1]) if is_turned else data


def _batch_dot(net: Network, at: Attributes, left: str, right: str) -> str:
    at.only("forward_stype", "default")
    first, second = _turned(net, left, at.flag("transpose_a")), _turned(net, right, at.flag("transpose_b"))
    return str(net.add("MatMul", first, second))


def _turned(net: Network, data: str, is_turned: bool) -> str:
    rank = net.rank(data)
    return net.transposed(data, [*range(rank - 2), rank - 1, rank - 2]) if is_turned else data


def _divided(net: Network, at: Attributes, data: str) -> str:
    return str(net.add("Div", data, net.number(sqrt(net.shape(data)[-1]), data)))


def _heads(net: Network, data: str, heads: int, parts: int, which: int) -> str:
    """Of [T, N, heads * parts * D] one part, as [N * heads, T, D]."""
    steps, batch, width = net.shape(data)
    size = width // heads // parts
    if size * heads * parts != width:
        raise RefusedError(f"{width} channels in {heads} heads of {parts} equal parts")
    apart = net.reshaped(data, [steps, batch, heads, parts, size])
    one = net.reshaped(net.sliced(apart, 3, which, which + 1), [steps, batch * heads, size])
    return net.transposed(one, [1, 0, 2])


def _scores(net: Network, queries: str, keys: str) -> str:
    scaled = net.add("Div", queries, net.number(sqrt(net.shape(queries)[-1]), queries))
    return str(net.add("MatMul", scaled, net.transposed(keys, [0, 2, 1])))


def _mixed(net: Network, values: str, attention: str, heads: int) -> str:
    found = net.transposed(net.add("MatMul", attention, values), [1, 0, 2])
    steps, both, size = net.shape(found)
    return net.reshaped(found, [steps, both // heads, heads * size])


def _self_scores(net: Network, at: Attributes, data: str) -> str:
    heads = at.whole("heads")
    return _scores(net, _heads(net, data, heads, 3, 0), _heads(net, data, heads, 3, 1))


def _self_mixed(net: Network, at: Attributes, data: str, attention: str) -> str:
    heads = at.whole("heads")
    return _mixed(net, _heads(net, data, heads, 3, 2), attention, heads)


def _cross_scores(net: Network, at: Attributes, queries: str, data: str) -> str:
    heads = at.whole("heads")
    return _scores(net, _heads(net, queries, heads, 1, 0), _heads(net, data, heads, 2, 0))


def _cross_mixed(net: Network, at: Attributes, data: str, attention: str) -> str:
    heads = at.whole("heads")
    return _mixed(net, _heads(net, data, heads, 2, 1), attention, heads)


CONVERTERS: dict[str, Converter] = {
    "FullyConnected": _dense, "dot": _dot, "batch_dot": _batch_dot, "_contrib_div_sqrt_dim": _divided,
    "_contrib_interleaved_matmul_selfatt_qk": _self_scores,
    "_contrib_interleaved_matmul_selfatt_valatt": _self_mixed,
    "_contrib_interleaved_matmul_encdec_qk": _cross_scores,
    "_contrib_interleaved_matmul_encdec_valatt": _cross_mixed,
}  # fmt: skip
