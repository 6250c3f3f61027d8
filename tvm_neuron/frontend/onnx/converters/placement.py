"""Operators that put parts of tensors in their places: Col2Im and TensorScatter, as reads at the result's places."""

import itertools
import math

import numpy as np
from tvm import relax

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.onnx.converters.converter import Converter, Node


def _col2im(node: Node) -> relax.Expr:
    """Columns [N, C * block, L] as blocks of an image, summed where they overlap: every pixel reads its elements."""
    image, block = (node.constant(at) for at in (1, 2))
    if image is None or block is None:
        raise ModelError("its image_shape or block_shape is known at run time only")
    sizes, kernel = [int(size) for size in image], [int(size) for size in block]
    batch, rows, columns = node.shape()
    taps = math.prod(kernel)
    sources = _sources(node, sizes, kernel, columns)
    channels = rows // taps
    flat = node.emit(relax.op.reshape(node.inputs[0], (batch, channels, taps * columns)))
    padded = node.emit(relax.op.nn.pad(flat, [0, 0, 0, 0, 0, 1]))  # what no block covers reads the zero at the end
    taken = node.emit(relax.op.take(padded, relax.const(sources.reshape(-1), "int64"), 2, mode="clip"))
    parts = node.emit(relax.op.reshape(taken, (batch, channels, taps, math.prod(sizes))))
    return relax.op.reshape(node.emit(relax.op.sum(parts, 2)), (batch, channels, *sizes))


def _sources(node: Node, sizes: list[int], kernel: list[int], columns: int) -> np.ndarray:
    """[taps, pixels]: the element of [taps * columns] that each pixel reads of each place of the block."""
    rank, taps = len(sizes), math.prod(kernel)
    strides, dilations = (node.attrs.get(name, (1,) * rank) for name in ("strides", "dilations"))
    pads = node.attrs.get("pads", (0,) * 2 * rank)
    counts = [
        (sizes[at] + pads[at] + pads[at + rank] - dilations[at] * (kernel[at] - 1) - 1) // strides[at] + 1
        for at in range(rank)
    ]
    if math.prod(counts) != columns:
        raise ModelError(f"its operand has {columns} columns; {math.prod(counts)} blocks fit the image")
    pixels = np.stack(np.meshgrid(*map(np.arange, sizes), indexing="ij"), -1).reshape(-1, rank)
    found = np.full((taps, len(pixels)), taps * columns)
    for tap, place in enumerate(itertools.product(*map(range, kernel))):
        begin = pixels + np.array(pads[:rank]) - np.array(place) * np.array(dilations)
        at = begin // np.array(strides)
        is_inside = ((begin % np.array(strides) == 0) & (at >= 0) & (at < np.array(counts))).all(1)
        flat = np.ravel_multi_index(tuple(np.where(is_inside[:, None], at, 0).T), counts)
        found[tap] = np.where(is_inside, tap * columns + flat, taps * columns)
    return found


def _tensor_scatter(node: Node) -> relax.Expr:
    """The cache with `update` written from write_indices[batch] on along an axis, around its end if circular."""
    cache, update = node.inputs[:2]
    shape, axis = node.shape(), node.attrs.get("axis", -2) % len(node.shape())
    size, count = shape[axis], node.shape(1)[axis]
    spread = [-1 if at == axis else 1 for at in range(len(shape))]
    index = relax.const(np.arange(size).reshape(spread), "int64")
    if node.given(2) is not None:
        first = node.emit(relax.op.reshape(node.inputs[2], [-1, *[1] * (len(shape) - 1)]))
        index = node.emit(relax.op.subtract(index, node.emit(relax.op.astype(first, "int64"))))
    zero = relax.const(0, "int64")
    if node.attrs.get("mode", b"linear") == b"circular":
        index = node.emit(relax.op.floor_mod(index, relax.const(size, "int64")))
    is_new = node.emit(
        relax.op.logical_and(
            node.emit(relax.op.greater_equal(index, zero)),
            node.emit(relax.op.less(index, relax.const(count, "int64"))),
        )
    )
    place = node.emit(relax.op.broadcast_to(node.emit(relax.op.clip(index, 0, count - 1)), shape))
    return relax.op.where(is_new, node.emit(relax.op.gather_elements(update, place, axis)), cache)


CONVERTERS: dict[str, Converter] = {"Col2Im": _col2im, "TensorScatter": _tensor_scatter}
