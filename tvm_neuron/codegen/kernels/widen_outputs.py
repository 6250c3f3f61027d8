"""widen_outputs: a convolution of few output channels computes several rows at once.

32 output channels use 32 of the PE array's columns. With the weights of 4 rows side by side, a window of 3 rows
becomes one of 6 rows, but gives 4 rows of output: half the matmuls. (Data of few channels are packed instead.)
"""

from dataclasses import replace

import numpy as np

from tvm_neuron.codegen.emit.emitter import partition_firsts
from tvm_neuron.codegen.kernels.channels import has_plain_constants
from tvm_neuron.codegen.kernels.folds import Fold
from tvm_neuron.codegen.kernels.pack import FEW_CHANNELS
from tvm_neuron.codegen.kernels.rewrite_folded import rewrite_folded
from tvm_neuron.codegen.kernels.row_axes import ROWS, row_of, window_of
from tvm_neuron.codegen.overlap.work import load_ps, work_of
from tvm_neuron.hw import Device
from tvm_neuron.schedule.expr import Axis, Expr, Index, Load, Num, rewrite
from tvm_neuron.schedule.graph import linear_indices
from tvm_neuron.schedule.kernel import Contraction, Kernel
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.operations import PARTITION_START_STEP
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import PARTITIONS, runs


def widen_outputs(kernels: list[Kernel], partition_of: dict[Tensor, int], device: Device) -> list[Kernel]:
    """The kernels, such convolutions with as many rows at once as take the engines least time."""
    return [_widened(kernel, partition_of, device) for kernel in kernels]


def _widened(kernel: Kernel, partition_of: dict[Tensor, int], device: Device) -> Kernel:
    root, row, channels = kernel.root, row_of(kernel), kernel.channel.extent
    if not isinstance(root, Contraction) or root.has_zeros or row is None or partition_of[kernel.out] != 1:
        return kernel
    window = window_of(root)
    if window is None or window.row is not row or window.step is None or root.weights.shape[0] <= FEW_CHANNELS:
        return kernel
    if not has_plain_constants(kernel, row) or not _is_one_run(kernel, partition_of, device):
        return kernel
    found, by, columns = [kernel], 2, _columns(channels)
    while by * columns <= device.pe_columns and row.extent % by == 0 and row.extent > by:
        found.append(_wide(kernel, row, by))
        by *= 2
    # Weights that repeat keep the DRAM longer, which other kernels wait for.
    return min(found, key=lambda kernel: max(work_of(kernel, device).values()) + load_ps(kernel, device))


def _is_one_run(kernel: Kernel, partition_of: dict[Tensor, int], device: Device) -> bool:
    """Whether one instruction reaches all channels of what the kernel writes, and of what it reads on the way out."""
    if any(linear_indices(load.indices) is None for load in kernel.operand_loads()):
        return False
    firsts, channels = partition_firsts(kernel, partition_of, ()), kernel.channel.extent
    is_reached = all(first % PARTITION_START_STEP == 0 for first in firsts)
    return is_reached and runs(channels, firsts, device.pe_columns) == [(0, channels, 1)]


def _columns(channels: int) -> int:
    """Columns from one row's channels to the next's, which start where engines may, in PSUM and in the output."""
    return -(-channels // PARTITION_START_STEP) * PARTITION_START_STEP


def _wide(kernel: Kernel, row: Axis, by: int) -> Kernel:
    """The same with `by` rows side by side on the columns; each goes to its place in the output."""
    images, _, rows, columns = kernel.out_maps
    plain = (images, Linear(0, {kernel.channel: 1}), Linear(0, {row: 1}), columns)
    flat = Tensor(kernel.out.name, kernel.out.shape, kernel.out.dtype)
    fold = Fold(ROWS, by, 0, row.extent, PARTITIONS, ((0, kernel.channel.extent),))
    folded = rewrite_folded(replace(kernel, out=flat, out_maps=plain), {flat: fold}, {flat: kernel.out})
    assert isinstance(folded.root, Contraction)
    ((block, _),) = folded.out_maps[2].terms.items()
    side = Axis("side", by)
    out = (images, kernel.out_maps[1], Linear(rows.const, {block: by, side: 1}), columns)
    at = folded.free.index(block) + 1
    depth, channels = folded.root.weights.shape[:-1], kernel.channel.extent
    weights = np.zeros((*depth, by, _columns(channels)), folded.root.weights.dtype)
    weights[..., :channels] = folded.root.weights.reshape(*depth, by, channels)
    root = replace(folded.root, side=side, weights=weights.reshape(*depth, -1))

    def leaf(part: Num | Index | Load) -> Expr:
        if not isinstance(part, Load) or part.tensor.value is not None or not part.indices:
            return part
        maps = linear_indices(part.indices) or ()
        return Load(part.tensor, tuple(m.replaced(row, Linear(0, {block: by, side: 1})).expr() for m in maps))

    free = (*folded.free[:at], side, *folded.free[at:])
    return replace(kernel, out_maps=out, free=free, expr=rewrite(kernel.expr, leaf), root=root)
