"""choose_folds: of which tensors several rows lie on the partitions side by side, and in what form kernels use them.

A folded tensor has rows b*y to b*y + b - 1 as one row, of b times as many channels: 32 channels of a large image take
all 128 partitions with 4 rows each, so that the engines work on 4 rows at once. More channels are folded in pieces that
fill the partitions so: 144 channels of 4 rows take 4.5 times 128 partitions, where 4 rows one by one take 8 times.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.codegen.kernels.channel_values import channel_values, sum_row
from tvm_neuron.codegen.kernels.channels import has_plain_constants
from tvm_neuron.schedule.expr import Axis, Load, Num
from tvm_neuron.schedule.graph import linear_indices
from tvm_neuron.schedule.kernel import Contraction, Kernel, Reduction
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import PARTITIONS

_DIMS = 4  # images, channels, rows, columns
_MOST = 4  # rows of channels that take more than the partitions


@dataclass(frozen=True)
class Fold:
    """`by` rows of a tensor as one: its rows are those from `first` on, of which there are `rows`, the others padding.

    `pieces` are the channels [start, end) that stay together: those that one kernel writes, in parts that fill the
    partitions if they are more. The channels of a piece lie there row by row.
    """

    by: int
    first: int
    rows: int
    pieces: tuple[tuple[int, int], ...]

    @property
    def order(self) -> NDArray[np.intp]:
        """Of each channel of the folded tensor, which one it is."""
        return np.concatenate([np.tile(np.arange(start, end), self.by) for start, end in self.pieces])

    @property
    def top(self) -> int:
        """The folded row in which rows start that are no padding."""
        return -(-self.first // self.by)

    def inside(self, low: int, high: int) -> tuple[tuple[int, int], ...]:
        """The pieces in a range of channels, counted from its first."""
        return tuple((start - low, end - low) for start, end in self.pieces if low <= start < high)


@dataclass(frozen=True)
class Window:
    """Along the rows of the data, a contraction reads `const + stride * row + dilation * step`."""

    row: Axis
    stride: int
    const: int
    step: Axis | None
    dilation: int


def possible_folds(kernels: Sequence[Kernel], partition_of: Mapping[Tensor, int]) -> dict[Tensor, Fold]:
    """The folds by as many rows as use the partitions best, each tensor by itself."""
    users: dict[Tensor, list[Kernel]] = {}
    for kernel in kernels:
        for tensor in kernel.tensors:
            users.setdefault(tensor, []).append(kernel)
    values = channel_values(kernels, partition_of)
    found = ((tensor, _largest(tensor, its, partition_of, values)) for tensor, its in users.items())
    return {tensor: fold for tensor, fold in found if fold is not None}


def common_folds(
    kernels: Sequence[Kernel], found: Mapping[Tensor, Fold], values: Container[Tensor]
) -> dict[Tensor, Fold]:
    """The folds by more than one row that remain: by as many as all kernels that use the tensor can work on.

    `values`, of one for each channel, follow the images beside them.
    """
    by = {tensor: fold.by for tensor, fold in found.items()}
    while sum(_lower(kernel, by, values) for kernel in kernels):
        pass  # a smaller fold may ask for another's
    return {
        tensor: replace(fold, by=by[tensor], pieces=tuple(_parts(fold.pieces, by[tensor])))
        for tensor, fold in found.items()
        if by[tensor] > 1
    }


def is_fill(kernel: Kernel) -> bool:
    """Whether it writes a number into a part of a tensor."""
    return kernel.root is None and not kernel.by_dma and isinstance(kernel.expr, Num)


def row_of(kernel: Kernel) -> Axis | None:
    """The axis along the rows of what an arithmetic kernel writes, channel by channel; None for any other."""
    maps = kernel.out_maps
    is_arithmetic = not kernel.by_dma and (kernel.root is None or isinstance(kernel.root, Contraction))
    if not is_arithmetic or len(maps) != _DIMS or maps[1].terms != {kernel.channel: 1}:
        return None
    row = next(iter(maps[2].terms), None)
    if row is None or maps[2].terms != {row: 1} or any({row, kernel.channel} & set(maps[d].terms) for d in (0, 3)):
        return None
    return row


def window_of(root: Contraction) -> Window | None:
    """How a contraction reads the rows of its data, all channels of which it sums; None if it is another way."""
    if len(root.maps) != _DIMS or root.maps[1] != Linear(0) or root.weights.shape[0] != root.data.shape[1]:
        return None
    part = root.maps[2]
    steps = [axis for axis in part.terms if axis in root.steps]
    others = [axis for axis in part.terms if axis not in root.steps]
    if len(others) != 1 or len(steps) > 1 or min(part.terms.values()) < 1:
        return None
    if any(axis in root.maps[d].terms for d in (0, 3) for axis in part.terms):
        return None
    step = steps[0] if steps else None
    return Window(others[0], part.terms[others[0]], part.const, step, part.terms[step] if step else 0)


def _largest(
    tensor: Tensor, users: Sequence[Kernel], partition_of: Mapping[Tensor, int], values: Container[Tensor]
) -> Fold | None:
    """The fold of as many rows as partitions have room for."""
    if tensor.kind != "temp" or len(tensor.shape) != _DIMS or partition_of[tensor] != 1:
        return None
    writers = [kernel for kernel in users if kernel.out is tensor and not is_fill(kernel)]
    if not writers or len({kernel.expr for kernel in users if is_fill(kernel)}) > 1:
        return None
    rows = [row.extent for kernel in writers if (row := row_of(kernel)) is not None]
    places = {(kernel.out_maps[2].const, kernel.out_maps[3].span) for kernel in writers}
    pieces = sorted((k.out_maps[1].const, k.out_maps[1].const + k.channel.extent) for k in writers)
    cuts = [0, *(end for _, end in pieces)]
    if len(rows) != len(writers) or len({*rows}) > 1 or len(places) > 1:
        return None
    if [*(start for start, _ in pieces), tensor.shape[1]] != cuts:
        return None
    by = _rows_at_once(pieces, rows[0])
    fold = Fold(by, writers[0].out_maps[2].const, rows[0], tuple(pieces))
    return fold if by > 1 and all(_is_used_by_rows(kernel, tensor, fold, values) for kernel in users) else None


def _rows_at_once(pieces: Sequence[tuple[int, int]], rows: int) -> int:
    """As many as the partitions have room for; of more channels, the fewest that leave least of them unused."""
    widest = max(end - start for start, end in pieces)
    found = [1]
    while rows % (2 * found[-1]) == 0 and rows > 2 * found[-1]:
        found.append(2 * found[-1])
    if 2 * widest <= PARTITIONS:
        return max(by for by in found if by * widest <= PARTITIONS)
    tiles = {by: sum(-(-by * (end - start) // PARTITIONS) for start, end in pieces) / by for by in found if by <= _MOST}
    return min(tiles, key=tiles.__getitem__)


def _parts(pieces: Iterable[tuple[int, int]], by: int) -> Iterator[tuple[int, int]]:
    """The pieces cut so that `by` rows of each fit on the partitions."""
    for start, end in pieces:
        most = min(end - start, PARTITIONS // by)
        yield from ((low, min(low + most, end)) for low in range(start, end, most))


def _is_used_by_rows(kernel: Kernel, tensor: Tensor, fold: Fold, values: Container[Tensor]) -> bool:
    """Whether the kernel fills the tensor, computes it, multiplies it, sums it up, or takes it element by element."""
    if is_fill(kernel):
        return True
    if isinstance(kernel.root, Reduction) and kernel.out in values:
        return _is_summed(kernel, kernel.root, tensor, fold)
    if kernel.by_dma or not (kernel.root is None or isinstance(kernel.root, Contraction)):
        return False
    if isinstance(kernel.root, Contraction) and kernel.root.data is tensor and window_of(kernel.root) is None:
        return False
    return all(_is_element(kernel, load, fold) for load in kernel.operand_loads() if load.tensor is tensor)


def _is_summed(kernel: Kernel, root: Reduction, tensor: Tensor, fold: Fold) -> bool:
    """Whether the kernel sums all rows of each channel, and reads the tensor for nothing else."""
    row, maps = sum_row(kernel), linear_indices(root.load.indices)
    if row is None or maps is None or any(kernel.operand_loads()) or fold.pieces != ((0, tensor.shape[1]),):
        return False
    return maps[2].const == fold.first and row.extent == fold.rows and kernel.channel.extent == tensor.shape[1]


def _is_element(kernel: Kernel, load: Load, fold: Fold) -> bool:
    """Whether it is the element of the same row and, in a piece, of the same channel as the kernel writes."""
    row, maps = row_of(kernel), linear_indices(load.indices)
    if row is None or maps is None or maps[2] != Linear(fold.first, {row: 1}) or row.extent != fold.rows:
        return False
    start = maps[1].const
    return maps[1].terms == {kernel.channel: 1} and (start, start + kernel.channel.extent) in fold.pieces


def _lower(kernel: Kernel, by: dict[Tensor, int], values: Container[Tensor]) -> bool:
    """Makes folds smaller that the kernel can't work on; whether there were any."""
    before = [by.get(tensor, 1) for tensor in kernel.tensors]
    if is_fill(kernel):
        return False
    operands = {kernel.out, *(load.tensor for load in kernel.operand_loads() if load.tensor not in values)}
    least = min(by.get(tensor, 1) for tensor in operands)
    window = window_of(kernel.root) if isinstance(kernel.root, Contraction) else None
    if not has_plain_constants(kernel, row_of(kernel)) or (window is not None and window.row is not row_of(kernel)):
        least = 1
    by.update((tensor, least) for tensor in operands & by.keys())
    if window is not None and isinstance(kernel.root, Contraction):
        while window.stride * least % by.get(kernel.root.data, 1):
            by[kernel.root.data] //= 2
    elif kernel.root is not None:
        by.update((tensor, 1) for tensor in operands & by.keys())
    return before != [by.get(tensor, 1) for tensor in kernel.tensors]
