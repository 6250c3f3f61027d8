"""Operators that choose elements by positions that another tensor has."""

import numpy as np

from tvm_neuron.frontend.mxnet.attributes import Attributes
from tvm_neuron.frontend.mxnet.network import Network
from tvm_neuron.frontend.mxnet.operators.converter import Converter


def _within(net: Network, positions: str, size: int, mode: str) -> str:
    """Positions as whole numbers below `size`: those outside are moved to the ends, or counted on from the other."""
    whole = net.cast(positions, np.int64)
    if mode == "wrap":
        return str(net.add("Mod", whole, net.constant(size, np.int64)))
    return str(net.add("Clip", whole, net.constant(0, np.int64), net.constant(size - 1, np.int64)))


def _take(net: Network, at: Attributes, data: str, positions: str) -> str:
    axis, mode = net.axis(at.whole("axis", 0), data), at.text("mode", "clip", ("clip", "wrap"))
    return str(net.add("Gather", data, _within(net, positions, net.shape(data)[axis], mode), axis=axis))


def _embedding(net: Network, at: Attributes, positions: str, weight: str) -> str:
    at.skip("input_dim", "output_dim", "dtype", "sparse_grad")  # as the weights are
    return str(net.add("Gather", weight, _within(net, positions, net.shape(weight)[0], "clip"), axis=0))


def _one_hot(net: Network, at: Attributes, positions: str) -> str:
    depth, kind = at.whole("depth"), at.dtype("dtype", np.float32)
    values = net.constant([at.number("off_value", 0), at.number("on_value", 1)], kind)
    whole = net.cast(positions, np.int64)
    inside = net.add("Where", net.add("Less", whole, net.constant(0, np.int64)), net.constant(depth, np.int64), whole)
    return str(net.add("OneHot", inside, net.ints([depth]), values, axis=-1))


def _pick(net: Network, at: Attributes, data: str, positions: str) -> str:
    axis = net.axis(at.whole("axis", -1), data)
    mode = at.text("mode", "clip", ("clip", "wrap"))
    sizes = [*net.shape(data)]
    sizes[axis] = 1
    rows = net.reshaped(_within(net, positions, net.shape(data)[axis], mode), sizes)
    found = net.add("GatherElements", data, rows, axis=axis)
    return found if at.flag("keepdims") else str(net.add("Squeeze", found, net.ints([axis])))


def _gather_nd(net: Network, at: Attributes, data: str, positions: str) -> str:
    """`positions` [M, ...] with the coordinates first, where ONNX has them last."""
    return str(net.add("GatherND", data, net.moved(net.cast(positions, np.int64), 0, -1)))


CONVERTERS: dict[str, Converter] = {
    "take": _take, "Embedding": _embedding, "one_hot": _one_hot, "pick": _pick, "gather_nd": _gather_nd,
}  # fmt: skip
