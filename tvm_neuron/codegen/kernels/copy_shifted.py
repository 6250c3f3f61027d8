"""copy_shifted: a layer of 1 x 1 also computes padding around its output, as zeros, from a copy of its data with marks.

Squares of 2 x 2 pixels may begin in the padding then, as behind `write_padding`, and the next layer multiplies 4
instead of 9. The data get a border of zeros, and channels that are 1 inside of it: with biases as the weights of these,
zeros come out in the padding. The data stay in squares that begin beside it, where others read them and add them to
their results; the array copies them to the others, which costs little since a layer before a wide one has few channels.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tvm_neuron.codegen.kernels.bring_in import border, fill
from tvm_neuron.codegen.kernels.channels_of_ones import ONES, on_wide, possible_ones, widen
from tvm_neuron.codegen.kernels.row_axes import COLUMNS, ROWS, is_fill, row_of, window_of
from tvm_neuron.codegen.kernels.sum_biases import biased
from tvm_neuron.codegen.kernels.write_padding import is_padded_by_one, reads_as_window_of_3, writing_more
from tvm_neuron.codegen.tiles.restrict import Rows, restrict
from tvm_neuron.hw import Device
from tvm_neuron.schedule.evaluate import evaluate
from tvm_neuron.schedule.expr import Axis, Expr, Index, Load, Num, rewrite
from tvm_neuron.schedule.kernel import ROOT, Contraction, Kernel
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor

_DIMS = (ROWS, COLUMNS)


def copy_shifted(
    kernels: Sequence[Kernel], image: Tensor, partition_of: dict[Tensor, int], device: Device
) -> list[Kernel] | None:
    """The kernels where the layer that computes the image also computes a row and column of its padding on each side.

    None unless a single layer of 1 x 1 computes it, from data that can have marks, convolutions of 3 x 3 read it, and
    its padding is what the layer makes of zeros. New tensors are added to `partition_of`.
    """
    fills = [kernel for kernel in kernels if kernel.out is image and is_fill(kernel)]
    writer = _writer(kernels, image)
    if writer is None or not fills or not is_padded_by_one(writer) or not _is_pointwise(writer):
        return None
    if not all(reads_as_window_of_3(kernel, image) for kernel in kernels if image in kernel.sources()):
        return None
    dims, padding = dict(partition_of), {value for kernel in fills for value in _of_zero(kernel)}
    if _of_zero(writer) != padding:
        kernels = _with_marks(kernels, writer, dims, device)
        writer = _writer(kernels, image)
        if writer is None or _of_zero(writer) != padding:
            return None
    root = writer.root
    assert isinstance(root, Contraction)
    data, inside = root.data, [(1, extent + 1) for extent in root.data.shape]
    shape = (*data.shape[:ROWS], *(extent + 2 for extent in data.shape[ROWS:]))
    padded, copy = (Tensor(f"{data.name}.{name}", shape, data.dtype) for name in ("padded", "copy"))
    inside[:ROWS] = [(0, extent) for extent in shape[:ROWS]]
    partition_of |= dims | {padded: 1, copy: 1}
    found: list[Kernel] = []
    for kernel in kernels:
        if kernel is writer:
            found += [_copying(writer, root, padded, copy), writing_more(writer, root, copy, [(1, 1), (1, 1)])]
        elif kernel not in fills:
            found += [fill(padded, kernel, 1, box, Num(0.0)) for box in border(shape, 1, inside) if kernel.out is data]
            found.append(_on_padded(kernel, data, padded))
    return found


def _writer(kernels: Sequence[Kernel], image: Tensor) -> Kernel | None:
    """The kernel that computes the image inside of its padding, if it is one."""
    writers = [kernel for kernel in kernels if kernel.out is image and not is_fill(kernel)]
    return writers[0] if len(writers) == 1 else None


def _is_pointwise(kernel: Kernel) -> bool:
    """Whether it computes each pixel of its output from that of its data alone."""
    root = kernel.root
    if not isinstance(root, Contraction) or root.side or root.scale or any(kernel.operand_loads()):
        return False
    if root.steps or any(window_of(root, along) is None for along in _DIMS):
        return False
    rows = [(along, row_of(kernel, along)) for along in _DIMS]
    return all(
        row is not None and root.maps[along] == Linear(0, {row: 1}) and root.data.shape[along] == row.extent
        for along, row in rows
    )


def _with_marks(kernels: Sequence[Kernel], writer: Kernel, dims: dict[Tensor, int], device: Device) -> list[Kernel]:
    """The kernels on data of the writer that have channels of ones, if these can, and on all in a sum with them."""
    assert isinstance(writer.root, Contraction)
    added = possible_ones(kernels, dims, device)
    if writer.root.data not in added:
        return [*kernels]
    wide: dict[Tensor, Rows] = {}
    widen(writer.root.data, added, wide, dims)
    while more := [t for t, others in added.items() if t not in wide and not wide.keys().isdisjoint(others)]:
        for tensor in more:
            widen(tensor, added, wide, dims)
    kernels = [_with_ones(kernel, wide, dims) for kernel in kernels]
    return [on_wide(kernel, wide, dims) for kernel in kernels]


def _with_ones(kernel: Kernel, wide: Mapping[Tensor, Rows], dims: Mapping[Tensor, int]) -> Kernel:
    """The kernel; a contraction of such a tensor with weights for its ones, which are the bias or else zeros."""
    root = kernel.root
    if not isinstance(root, Contraction) or wide.keys().isdisjoint(kernel.tensors):
        return kernel
    after = biased(kernel, root, dims[root.data]) if root.data in wide and kernel.out not in wide else None
    if after is not None:
        return after
    zeros = np.zeros((ONES if root.data in wide else 0, *root.weights.shape[1:]), root.weights.dtype)
    return replace(kernel, root=replace(root, weights=np.concatenate([root.weights, zeros]), has_zeros=True))


def _of_zero(kernel: Kernel) -> set[float]:
    """What the way out makes of 0, in all places; it reads nothing that is known only at run time."""

    def leaf(part: Num | Index | Load) -> Expr:
        return Num(0.0) if part is ROOT else part

    return {*np.unique(evaluate(rewrite(kernel.expr, leaf), [kernel.channel, *kernel.free])).tolist()}


def _copying(writer: Kernel, root: Contraction, padded: Tensor, copy: Tensor) -> Kernel:
    """The kernel that multiplies all of the padded data by the identity."""
    axes = [Axis(name, extent) for name, extent in zip(("n", "m", "yy", "xx"), copy.shape, strict=True)]
    maps = tuple(Linear(0, {axis: 1} if axis.extent > 1 else {}) for axis in axes)
    free = tuple(axis for axis in axes if axis is not axes[1] and axis.extent > 1)
    data_maps = (maps[0], Linear(0), *maps[ROWS:])
    identity = np.eye(copy.shape[1], dtype=root.weights.dtype)
    contraction = Contraction(padded, data_maps, (), identity, has_zeros=True, dtype=root.dtype)
    return Kernel(writer.origins[:1], copy, maps, axes[1], free, ROOT, contraction)


def _on_padded(kernel: Kernel, data: Tensor, padded: Tensor) -> Kernel:
    """The kernel with the padded data in the place of those without."""
    if data not in kernel.tensors:
        return kernel
    between = Tensor(data.name, padded.shape, data.dtype)
    kernel = restrict(kernel, None, 0, 0, {data: Rows(between, ROWS, -1)})
    return restrict(kernel, None, 0, 0, {between: Rows(padded, COLUMNS, -1)})
