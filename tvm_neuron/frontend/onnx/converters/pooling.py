"""Poolings that no operator of Relax has: dilated averages, and maxima with their places.

Each is arithmetic on one strided slice of the padded operand for every place of the window.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce

import numpy as np
from tvm import relax

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.onnx.converters.converter import Converter, Node
from tvm_neuron.frontend.onnx.converters.padding import padding
from tvm_neuron.frontend.onnx.converters.restated import by_tvm


@dataclass(frozen=True)
class Windows:
    """The windows over the spatial axes: sizes of the operand and the result, and where the windows' elements lie."""

    sizes: tuple[int, ...]
    results: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]

    def padded(self, node: Node, fill: float) -> relax.Expr:
        """The operand with `fill` around it, as far as the windows reach."""
        pairs = [0] * 4
        for axis, before in enumerate(self.before):
            last = (self.results[axis] - 1) * self.strides[axis] + (self.kernel[axis] - 1) * self.dilations[axis]
            pairs += [before, max(last + 1 - before - self.sizes[axis], 0)]
        return node.emit(relax.op.nn.pad(node.inputs[0], pairs, pad_value=fill)) if any(pairs) else node.inputs[0]

    def slices(self, node: Node, padded: relax.Expr) -> Iterator[tuple[tuple[int, ...], relax.Expr]]:
        """For every place of the window: the place, and the elements there of all windows."""
        for place in itertools.product(*map(range, self.kernel)):
            part = padded
            for axis, at in enumerate(place):
                part = node.emit(self.slice(part, axis, at))
            yield place, part

    def slice(self, padded: relax.Expr, axis: int, place: int) -> relax.Expr:
        """The element `place` along one axis of all windows."""
        begin, step = place * self.dilations[axis], self.strides[axis]
        return relax.op.strided_slice(
            padded, [2 + axis], [begin], [begin + (self.results[axis] - 1) * step + 1], [step]
        )

    def positions(self, axis: int, place: int) -> np.ndarray:
        """Where on `axis` of the operand the windows have their element `place`; padding is outside the axis."""
        return np.arange(self.results[axis]) * self.strides[axis] + place * self.dilations[axis] - self.before[axis]


def windows(node: Node) -> Windows:
    """The windows that a pooling's attributes describe."""
    sizes, kernel = node.shape()[2:], tuple(int(size) for size in node.attrs["kernel_shape"])
    ones = (1,) * len(kernel)
    strides, dilations = (tuple(map(int, node.attrs.get(name, ones))) for name in ("strides", "dilations"))
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    pads = padding(node.attrs, sizes, extents, strides)
    before, after = tuple(pads[: len(sizes)]), tuple(pads[len(sizes) :])
    results = []
    for axis, size in enumerate(sizes):
        room = size + before[axis] + after[axis] - extents[axis]
        if not node.attrs.get("ceil_mode", 0):
            results.append(room // strides[axis] + 1)
            continue
        count = math.ceil(room / strides[axis]) + 1
        # A window that would begin in the padding behind the operand is none.
        results.append(count - ((count - 1) * strides[axis] >= size + before[axis]))
    return Windows(sizes, tuple(results), kernel, strides, dilations, before, after)


def _with_pads(node: Node, op: str) -> relax.Expr | None:
    """`auto_pad` as the pads that it stands for; TVM's converter takes strides beyond the operand for negative ones."""
    if not node.attrs.get("auto_pad", b"NOTSET").startswith(b"SAME") or not node.is_static():
        return None
    over = windows(node)
    attrs = {name: value for name, value in node.attrs.items() if name not in ("auto_pad", "ceil_mode")}
    return by_tvm(node, op, list(node.inputs), attrs | {"pads": over.before + over.after})


def _average_pool(node: Node) -> relax.Expr | None:
    """Means over dilated windows: sums along one axis after the other, divided by the number of elements there."""
    if all(step == 1 for step in node.attrs.get("dilations", ())):
        return _with_pads(node, "AveragePool")
    over, dtype = windows(node), node.dtype()
    result = over.padded(node, 0.0)
    for axis, size in enumerate(over.sizes):
        parts = [node.emit(over.slice(result, axis, place)) for place in range(over.kernel[axis])]
        total = reduce(lambda left, right: node.emit(relax.op.add(left, right)), parts)
        places = np.stack([over.positions(axis, place) for place in range(over.kernel[axis])])
        low, high = (-over.before[axis], size + over.after[axis]) if node.attrs.get("count_include_pad") else (0, size)
        counts = ((places >= low) & (places < high)).sum(0)
        shares = (1 / counts).astype(dtype).reshape([-1 if at == axis else 1 for at in range(len(over.sizes))])
        is_same = (counts == counts[0]).all()
        result = node.emit(relax.op.multiply(total, relax.const(shares.flat[0] if is_same else shares, dtype)))
    return result


def _max_pool(node: Node) -> relax.Expr | None:
    """Maxima and where they are in the operand, row by row or, with storage_order 1, column by column."""
    if node.outputs < 2:
        return _with_pads(node, "MaxPool")
    over, dtype = windows(node), node.dtype()
    if "float" not in dtype:
        raise ModelError(f"it gives the places of maxima of {dtype}; of floating dtypes alone they are converted")
    best, found = None, None
    for place, part in over.slices(node, over.padded(node, -math.inf)):
        here = relax.const(_places(node, over, place), "int64")
        if best is None:
            best, found = part, here
            continue
        is_better = node.emit(relax.op.greater(part, best))
        best = node.emit(relax.op.where(is_better, part, best))
        found = node.emit(relax.op.where(is_better, here, found))
    return relax.Tuple([best, found])


def _places(node: Node, over: Windows, place: tuple[int, ...]) -> np.ndarray:
    """The flat indices in the operand of one place of all windows; of padding any, since it is never the maximum."""
    shape = node.shape()
    grids = [np.clip(over.positions(axis, at), 0, over.sizes[axis] - 1) for axis, at in enumerate(place)]
    meshes = tuple(np.meshgrid(*grids, indexing="ij"))
    is_by_column = bool(node.attrs.get("storage_order", 0))
    inner = np.ravel_multi_index(meshes, over.sizes, order="F" if is_by_column else "C")
    offsets = np.arange(shape[0] * shape[1]).reshape(shape[:2]) * math.prod(over.sizes)
    return offsets[(..., *[None] * len(over.sizes))] + inner


CONVERTERS: dict[str, Converter] = {"AveragePool": _average_pool, "MaxPool": _max_pool}
