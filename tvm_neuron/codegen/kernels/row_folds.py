"""possible_folds: of which tensors several rows lie on the partitions side by side, and in what form kernels use them.

A folded tensor has rows b*y to b*y + b - 1 as one row, of b times as many channels: 32 channels of a large image take
all 128 partitions with 4 rows each, so that the engines work on 4 rows at once. More channels are folded in pieces that
fill the partitions so: 144 channels of 4 rows take 4.5 times 128 partitions, where 4 rows one by one take 8 times.
Columns are folded in the same way. Of 2 rows and of 2 columns, a square of 4 pixels lies on the partitions: a window of
5 x 5 for all 4 of them meets 9 squares, and of 4 rows in one 15 times as many.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from tvm_neuron.codegen.kernels.channel_values import channel_values, sum_row
from tvm_neuron.codegen.kernels.channels import has_plain_constants
from tvm_neuron.codegen.kernels.folds import Fold, Room
from tvm_neuron.codegen.kernels.row_axes import ROWS, channel_terms, is_fill, is_store, row_of, stored_row, window_of
from tvm_neuron.schedule.expr import Load
from tvm_neuron.schedule.graph import linear_indices
from tvm_neuron.schedule.kernel import Contraction, Kernel, Reduction
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.uses import users_of

_DIMS = 4  # images, channels, rows, columns
MOST_GROUPED = 1024  # folded channels of groups: of more, weights that are mostly zeros take gigabytes


def possible_folds(kernels: Sequence[Kernel], partition_of: Mapping[Tensor, int], room: Room) -> dict[Tensor, Fold]:
    """The folds by as many rows as use the partitions best, each tensor by itself."""
    values = channel_values(kernels, partition_of)
    found = ((tensor, _largest(tensor, its, partition_of, values, room)) for tensor, its in users_of(kernels).items())
    return {tensor: fold for tensor, fold in found if fold is not None}


def common_folds(
    kernels: Sequence[Kernel], found: Mapping[Tensor, Fold], values: Container[Tensor]
) -> dict[Tensor, Fold]:
    """The folds by more than one row that remain: by as many as all kernels that use the tensor can work on.

    `values`, of one for each channel, follow the images beside them.
    """
    by = {tensor: fold.by for tensor, fold in found.items()}
    along = next((fold.along for fold in found.values()), ROWS)
    while sum(_lower(kernel, by, values, along) for kernel in kernels):
        pass  # a smaller fold may ask for another's
    return {
        tensor: replace(fold, by=by[tensor], pieces=tuple(_parts(fold.pieces, fold.partitions // by[tensor])))
        for tensor, fold in found.items()
        if by[tensor] > 1
    }


def _largest(
    tensor: Tensor,
    users: Sequence[Kernel],
    partition_of: Mapping[Tensor, int],
    values: Container[Tensor],
    room: Room,
) -> Fold | None:
    """The fold of as many rows as partitions have room for."""
    if tensor.kind != "temp" or len(tensor.shape) != _DIMS or partition_of[tensor] != 1:
        return None
    writers = [kernel for kernel in users if kernel.out is tensor and not is_fill(kernel)]
    if not writers or len({kernel.expr for kernel in users if is_fill(kernel)}) > 1:
        return None
    rows = [row.extent for kernel in writers if (row := row_of(kernel, room.along)) is not None]
    places = {kernel.out_maps[room.along].span for kernel in writers}
    pieces = sorted({(k.out_maps[1].const, k.out_maps[1].const + k.channel.extent) for k in writers})
    cuts = [0, *(end for _, end in pieces)]
    if len(rows) != len(writers) or len({*rows}) > 1 or len(places) > 1:
        return None
    if [*(start for start, _ in pieces), tensor.shape[1]] != cuts:
        return None
    by = _rows_at_once(pieces, rows[0], room)
    if by * tensor.shape[1] > MOST_GROUPED and any(_is_grouped(kernel, tensor) for kernel in users):
        return None
    fold = Fold(room.along, by, writers[0].out_maps[room.along].const, rows[0], room.partitions, tuple(pieces))
    return fold if by > 1 and all(_is_used_by_rows(kernel, tensor, fold, values) for kernel in users) else None


def _is_grouped(kernel: Kernel, tensor: Tensor) -> bool:
    return isinstance(kernel.root, Contraction) and kernel.root.data is tensor and kernel.root.has_zeros


def _rows_at_once(pieces: Sequence[tuple[int, int]], rows: int, room: Room) -> int:
    """As many as the partitions have room for; of more channels, the fewest that leave least of them unused."""
    widest = max(end - start for start, end in pieces)
    found = [1]
    while rows % (2 * found[-1]) == 0 and rows > 2 * found[-1]:
        found.append(2 * found[-1])
    if 2 * widest <= room.partitions:
        return max(by for by in found if by * widest <= room.partitions)
    found = [by for by in found if by <= room.most]
    tiles = {by: sum(-(-by * (end - start) // room.partitions) for start, end in pieces) / by for by in found}
    return min(reversed(found) if room.prefers_more else found, key=tiles.__getitem__)


def _parts(pieces: Iterable[tuple[int, int]], most: int) -> Iterator[tuple[int, int]]:
    """The pieces cut into parts of at most so many channels."""
    for start, end in pieces:
        yield from ((low, min(low + most, end)) for low in range(start, end, most))


def _is_used_by_rows(kernel: Kernel, tensor: Tensor, fold: Fold, values: Container[Tensor]) -> bool:
    """Whether the kernel fills the tensor, computes it, multiplies it, sums it up, or takes it element by element."""
    if is_fill(kernel):
        return True
    if (row := stored_row(kernel, tensor, fold.along)) is not None:
        return row.extent == fold.rows and fold.pieces == ((0, tensor.shape[1]),)
    if isinstance(kernel.root, Reduction) and kernel.out in values:
        return _is_summed(kernel, kernel.root, tensor, fold)
    if kernel.by_dma or not (kernel.root is None or isinstance(kernel.root, Contraction)):
        return False
    if (
        isinstance(kernel.root, Contraction)
        and kernel.root.data is tensor
        and window_of(kernel.root, fold.along) is None
    ):
        return False
    return all(_is_element(kernel, load, fold) for load in kernel.operand_loads() if load.tensor is tensor)


def _is_summed(kernel: Kernel, root: Reduction, tensor: Tensor, fold: Fold) -> bool:
    """Whether the kernel sums all rows of each channel, and reads the tensor for nothing else."""
    row, maps = sum_row(kernel, fold.along), linear_indices(root.load.indices)
    if row is None or maps is None or any(kernel.operand_loads()) or fold.pieces != ((0, tensor.shape[1]),):
        return False
    return maps[fold.along].const == fold.first and row.extent == fold.rows and kernel.channel.extent == tensor.shape[1]


def _is_element(kernel: Kernel, load: Load, fold: Fold) -> bool:
    """Whether it is the element of the same row and, in a piece, of the same channel as the kernel writes."""
    row, maps = row_of(kernel, fold.along), linear_indices(load.indices)
    if row is None or maps is None or maps[fold.along] != Linear(fold.first, {row: 1}) or row.extent != fold.rows:
        return False
    start = maps[1].const
    return maps[1].terms == channel_terms(kernel) and (start, start + kernel.channel.extent) in fold.pieces


def _lower(kernel: Kernel, by: dict[Tensor, int], values: Container[Tensor], along: int) -> bool:
    """Makes folds smaller that the kernel can't work on; whether there were any."""
    before = [by.get(tensor, 1) for tensor in kernel.tensors]
    if is_fill(kernel) or is_store(kernel):
        return False  # they follow
    operands = {kernel.out, *(load.tensor for load in kernel.operand_loads() if load.tensor not in values)}
    least = min(by.get(tensor, 1) for tensor in operands)
    window = window_of(kernel.root, along) if isinstance(kernel.root, Contraction) else None
    row = row_of(kernel, along)
    if not has_plain_constants(kernel, row) or (window is not None and window.row is not row):
        least = 1
    if window is not None and least % window.per:
        least = 1  # phase by phase
    by.update((tensor, least) for tensor in operands & by.keys())
    if window is not None and isinstance(kernel.root, Contraction):
        data = kernel.root.data
        while by.get(data, 1) > 1 and window.stride * least % (window.per * by[data]):
            by[data] //= 2  # at most one folded row is read after the other
    elif kernel.root is not None:
        by.update((tensor, 1) for tensor in operands & by.keys())
    return before != [by.get(tensor, 1) for tensor in kernel.tensors]
