"""Operators that put parts of tensors in their places: Col2Im and TensorScatter, as what the result's places read."""

import math
from dataclasses import dataclass

import numpy as np
from tvm import relax

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.onnx.converters.converter import Converter, Node


@dataclass(frozen=True)
class _Blocks:
    """How blocks lie along a dimension of an image: `count` of `taps` pixels each, the first from pixel -`begin` on."""

    size: int
    taps: int
    stride: int
    dilation: int
    begin: int
    count: int


def _col2im(node: Node) -> relax.Expr:
    """Columns [N, C * block, L] as blocks of an image, summed where they overlap: one dimension after the other."""
    image, block = (node.constant(at) for at in (1, 2))
    if image is None or block is None:
        raise ModelError("its image_shape or block_shape is known at run time only")
    every = _blocks(node, [int(size) for size in image], [int(size) for size in block])
    taps, counts = [blocks.taps for blocks in every], [blocks.count for blocks in every]
    batch, rows, columns = node.shape()
    if math.prod(counts) != columns:
        raise ModelError(f"its operand has {columns} columns; {math.prod(counts)} blocks fit the image")
    found = node.emit(relax.op.reshape(node.inputs[0], (batch, rows // math.prod(taps), *taps, *counts)))
    for blocks in every:  # each time, the places in blocks that come first are gone, and what they were in is pixels
        found = _folded(node, found, blocks, 1 + len(every))
    return found


def _blocks(node: Node, sizes: list[int], taps: list[int]) -> list[_Blocks]:
    rank = len(sizes)
    strides, dilations = (node.attrs.get(name, (1,) * rank) for name in ("strides", "dilations"))
    pads = node.attrs.get("pads", (0,) * 2 * rank)
    counts = [
        (sizes[at] + pads[at] + pads[at + rank] - dilations[at] * (taps[at] - 1) - 1) // strides[at] + 1
        for at in range(rank)
    ]
    return [_Blocks(*each) for each in zip(sizes, taps, strides, dilations, pads[:rank], counts, strict=True)]


def _folded(node: Node, found: relax.Expr, blocks: _Blocks, axis: int) -> relax.Expr:
    """Places in blocks (axis 2) and the blocks (the axis behind `axis`) as pixels, on `axis` of the result.

    Pixels a stride apart are sums of whole rows of blocks; where blocks lie side by side, they are one of these.
    """
    shape = [int(dim) for dim in found.ty.shape]
    rest = shape[:2] + shape[3 : axis + 1], shape[axis + 2 :]
    if blocks.stride == blocks.taps and blocks.dilation == 1:
        order = [at for at in range(len(shape)) if at != 2]
        placed = node.emit(relax.op.permute_dims(found, [*order[: axis + 1], 2, *order[axis + 1 :]]))
        length, begin = blocks.count * blocks.taps, blocks.begin
    else:
        steps = -(-blocks.size // blocks.stride)
        phases = [_phase(node, found, blocks, axis, phase, steps) for phase in range(blocks.stride)]
        placed = node.emit(relax.op.stack(phases, axis + 1))
        length, begin = steps * blocks.stride, 0
    flat = node.emit(relax.op.reshape(placed, (*rest[0], length, *rest[1])))
    return _window(node, flat, axis, begin, blocks.size)


def _phase(node: Node, found: relax.Expr, blocks: _Blocks, axis: int, phase: int, steps: int) -> relax.Expr:
    """The pixels phase, phase + stride, ... of a dimension."""
    shape = [int(dim) for dim in found.ty.shape]
    alone = (*shape[:2], *shape[3:])
    total = None
    for tap in range(blocks.taps):
        first, rest = divmod(phase + blocks.begin - tap * blocks.dilation, blocks.stride)
        if rest or first >= blocks.count or first + steps <= 0:
            continue
        one = node.emit(relax.op.strided_slice(found, [2], [tap], [tap + 1]))
        part = _window(node, node.emit(relax.op.reshape(one, alone)), axis, first, steps)
        total = part if total is None else node.emit(relax.op.add(total, part))
    if total is None:
        return node.emit(relax.op.zeros((*alone[:axis], steps, *alone[axis + 1 :]), node.dtype()))
    return total


def _window(node: Node, found: relax.Expr, axis: int, begin: int, size: int) -> relax.Expr:
    """[begin, begin + size) of an axis, with zeros where there is nothing."""
    extent, rank = int(found.ty.shape[axis]), len(found.ty.shape)
    low, high = max(begin, 0), min(begin + size, extent)
    cut = node.emit(relax.op.strided_slice(found, [axis], [low], [high]))
    around = [(low - begin, begin + size - high) if at == axis else (0, 0) for at in range(rank)]
    return node.emit(relax.op.nn.pad(cut, [width for pair in around for width in pair]))


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
