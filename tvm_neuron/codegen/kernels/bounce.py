"""bounce_through_dram: a move that permutes partitions between two tensors in SBUF goes through device memory."""

from collections.abc import Mapping
from dataclasses import replace

from tvm_neuron.schedule.expr import Axis, Index, Load
from tvm_neuron.schedule.graph import linear_indices
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.partitions import across
from tvm_neuron.schedule.roles import is_diagonal
from tvm_neuron.schedule.tensor import Tensor


def bounce_through_dram(kernels: list[Kernel], partition_of: dict[Tensor, int]) -> list[Kernel]:
    """The kernels with such moves in two steps; the tensor between them has kind "scratch" and lies in DRAM."""
    found: list[Kernel] = []
    copies: dict[Tensor, Tensor] = {}
    for kernel in kernels:
        copies.pop(kernel.out, None)  # made before this part of it was written
        load = kernel.expr
        is_move = kernel.by_dma and not kernel.root and isinstance(load, Load) and load.tensor.kind == "temp"
        if not is_move or not isinstance(load, Load) or not permutes_partitions(kernel, load, partition_of):
            found.append(kernel)
            continue
        if load.tensor not in copies:
            copy = Tensor(f"{load.tensor.name}.moved", load.tensor.shape, load.tensor.dtype, "scratch")
            copies[load.tensor], partition_of[copy] = copy, partition_of[load.tensor]
            found.append(_whole_move(kernel, load.tensor, copy, partition_of))
        found.append(replace(kernel, expr=Load(copies[load.tensor], load.indices)))
    return found


def permutes_partitions(kernel: Kernel, load: Load, partition_of: Mapping[Tensor, int], in_tiles: bool = False) -> bool:
    """Whether a move, which does nothing but `load`, reads from partitions in another order than it writes.

    So does one that reads at another place in each partition. In tiles, rows of outputs are made in SBUF, too.
    """
    if load.tensor.value is not None:  # a table, which lies in device memory anyway
        return False
    maps = linear_indices(load.indices) or ()
    if is_diagonal(load, partition_of[load.tensor]):
        return True
    part = maps[partition_of[load.tensor]] if maps else Linear()
    if across(part) not in ({}, {kernel.channel: 1}):  # several axes run over its partitions, or another one
        return True
    if part.terms == kernel.out_maps[partition_of[kernel.out]].terms:
        return False
    # What is stored along the partitions takes no partitions on the other side.
    return in_tiles or not kernel.out.is_stored or not part.terms


def _whole_move(kernel: Kernel, source: Tensor, target: Tensor, partition_of: dict[Tensor, int]) -> Kernel:
    axes = tuple(Axis(f"d{d}", extent) for d, extent in enumerate(source.shape))
    channel = axes[partition_of[source]]
    maps = tuple(Linear(0, {axis: 1} if axis.extent > 1 else {}) for axis in axes)
    return Kernel(
        origins=kernel.origins,
        out=target,
        out_maps=maps,
        channel=channel,
        free=tuple(axis for axis in axes if axis is not channel and axis.extent > 1),
        expr=Load(source, tuple(Index(axis) for axis in axes)),
        by_dma=True,
    )
