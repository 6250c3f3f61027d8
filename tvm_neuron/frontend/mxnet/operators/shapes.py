"""Operators that move elements: other shapes, parts, several tensors as one."""

from math import prod

from tvm_neuron.frontend.mxnet.attributes import Attributes
from tvm_neuron.frontend.mxnet.network import Network
from tvm_neuron.frontend.mxnet.operators.converter import Converter
from tvm_neuron.frontend.mxnet.operators.new_shape import new_shape
from tvm_neuron.frontend.refused import RefusedError


def _reshape(net: Network, at: Attributes, data: str) -> str:
    at.skip("keep_highest", "target_shape")
    return net.reshaped(data, new_shape(net.shape(data), at.sizes("shape"), at.flag("reverse")))


def _reshape_like(net: Network, at: Attributes, data: str, like: str) -> str:
    bounds = {name: at.maybe(name) for name in ("lhs_begin", "lhs_end", "rhs_begin", "rhs_end")}
    own, other = net.shape(data), net.shape(like)
    taken = other[bounds["rhs_begin"] : bounds["rhs_end"]]
    begin = bounds["lhs_begin"] or 0
    end = len(own) if bounds["lhs_end"] is None else bounds["lhs_end"]
    return net.reshaped(data, (*own[:begin], *taken, *own[end:]))


def _flatten(net: Network, at: Attributes, data: str) -> str:
    return str(net.add("Flatten", data, axis=1))


def _expand_dims(net: Network, at: Attributes, data: str) -> str:
    return str(net.add("Unsqueeze", data, net.ints([at.whole("axis")])))


def _squeeze(net: Network, at: Attributes, data: str) -> str:
    axes = at.sizes("axis", ())
    return str(net.add("Squeeze", data, net.ints(axes)) if axes else net.add("Squeeze", data))


def _transpose(net: Network, at: Attributes, data: str) -> str:
    return net.transposed(data, at.sizes("axes", range(net.rank(data))[::-1]))


def _swap(net: Network, at: Attributes, data: str) -> str:
    order = [*range(net.rank(data))]
    one, other = net.axis(at.whole("dim1", 0), data), net.axis(at.whole("dim2", 0), data)
    order[one], order[other] = other, one
    return net.transposed(data, order)


def _concat(net: Network, at: Attributes, *data: str) -> str:
    return str(net.add("Concat", *data, axis=at.whole("dim", 1)))


def _stack(net: Network, at: Attributes, *data: str) -> str:
    axis = at.whole("axis", 0)
    return str(net.add("Concat", *[net.add("Unsqueeze", each, net.ints([axis])) for each in data], axis=axis))


def _split(net: Network, at: Attributes, data: str) -> list[str]:
    axis, parts = net.axis(at.whole("axis", 1), data), at.whole("num_outputs")
    if parts < 1 or net.shape(data)[axis] % parts:
        raise RefusedError(f"{net.shape(data)[axis]} elements in {parts} equal parts")
    found = net.add("Split", data, axis=axis, num_outputs=parts, results=parts) if parts > 1 else data
    pieces = [found] if isinstance(found, str) else found
    return [net.add("Squeeze", each, net.ints([axis])) for each in pieces] if at.flag("squeeze_axis") else pieces


def _slice(net: Network, at: Attributes, data: str) -> str:
    begin, end, step = at.bounds("begin"), at.bounds("end"), at.bounds("step")
    for axis, (first, last) in enumerate(zip(begin, end, strict=True)):
        stride = (step[axis] if axis < len(step) else None) or 1
        if (first, last, stride) != (None, None, 1):
            data = net.sliced(data, axis, first, last, stride)
    return data


def _slice_axis(net: Network, at: Attributes, data: str) -> str:
    return net.sliced(data, net.axis(at.whole("axis"), data), at.whole("begin"), at.maybe("end"))


def _slice_like(net: Network, at: Attributes, data: str, like: str) -> str:
    for axis in at.sizes("axes", range(net.rank(data))):
        data = net.sliced(data, net.axis(axis, data), 0, net.shape(like)[axis])
    return data


def _reverse(net: Network, at: Attributes, data: str) -> str:
    for axis in at.sizes("axis"):
        data = net.sliced(data, net.axis(axis, data), None, None, -1)
    return data


def _repeat(net: Network, at: Attributes, data: str) -> str:
    times, axis = at.whole("repeats"), at.maybe("axis")
    if axis is None:
        data, axis = net.reshaped(data, [prod(net.shape(data))]), 0
    axis, shape = net.axis(axis, data), net.shape(data)
    split = net.reshaped(data, (*shape[: axis + 1], 1, *shape[axis + 1 :]))
    wide = net.expanded(split, (*shape[: axis + 1], times, *shape[axis + 1 :]))
    return net.reshaped(wide, (*shape[:axis], shape[axis] * times, *shape[axis + 1 :]))


def _tile(net: Network, at: Attributes, data: str) -> str:
    times = at.sizes("reps")
    rank = max(len(times), net.rank(data))
    whole = net.reshaped(data, [*[1] * (rank - net.rank(data)), *net.shape(data)])
    return str(net.add("Tile", whole, net.ints([*[1] * (rank - len(times)), *times])))


def _pad(net: Network, at: Attributes, data: str) -> str:
    widths, mode = at.sizes("pad_width"), at.text("mode", "constant", ("constant", "edge", "reflect"))
    value = net.number(at.number("constant_value", 0), data)
    return str(net.add("Pad", data, net.ints([*widths[::2], *widths[1::2]]), value, mode=mode))


def _broadcast_axis(net: Network, at: Attributes, data: str) -> str:
    sizes = [*net.shape(data)]
    for axis, size in zip(at.sizes("axis"), at.sizes("size"), strict=True):
        sizes[axis] = size
    return net.expanded(data, sizes)


def _broadcast_to(net: Network, at: Attributes, data: str) -> str:
    sizes = zip(at.sizes("shape"), net.shape(data), strict=True)
    return net.expanded(data, [wanted or own for wanted, own in sizes])


def _broadcast_like(net: Network, at: Attributes, data: str, like: str) -> str:
    sizes = [*net.shape(data)]
    own, other = at.sizes("lhs_axes", range(net.rank(data))), at.sizes("rhs_axes", range(net.rank(like)))
    for axis, theirs in zip(own, other, strict=True):
        sizes[axis] = net.shape(like)[theirs]
    return net.expanded(data, sizes)


def _blocks(op: str) -> Converter:
    return lambda net, at, data: net.add(op, data, blocksize=at.whole("block_size"))


CONVERTERS: dict[str, Converter] = {
    "Reshape": _reshape, "reshape": _reshape, "reshape_like": _reshape_like,
    "Flatten": _flatten, "flatten": _flatten,
    "expand_dims": _expand_dims, "squeeze": _squeeze,
    "transpose": _transpose, "SwapAxis": _swap, "swapaxes": _swap,
    "Concat": _concat, "concat": _concat, "_rnn_param_concat": _concat, "stack": _stack,
    "SliceChannel": _split, "split": _split,
    "slice": _slice, "crop": _slice, "slice_axis": _slice_axis, "slice_like": _slice_like,
    "reverse": _reverse, "flip": _reverse, "repeat": _repeat, "tile": _tile, "Pad": _pad, "pad": _pad,
    "broadcast_axis": _broadcast_axis, "broadcast_axes": _broadcast_axis, "broadcast_to": _broadcast_to,
    "broadcast_like": _broadcast_like,
    "depth_to_space": _blocks("DepthToSpace"), "space_to_depth": _blocks("SpaceToDepth"),
}  # fmt: skip
