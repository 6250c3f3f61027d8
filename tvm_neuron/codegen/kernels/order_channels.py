"""order_channels: what is multiplied together lies together on the partitions.

Where two kernels each write two rows of a tensor side by side, what one row of a contraction sums up is in two places,
each of which fills half of the PE array's rows. In another order it fills all of them, and takes half the matmuls.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from tvm_neuron.codegen.kernels.channels import channels_of, has_plain_constants
from tvm_neuron.codegen.overlap.work import work_of
from tvm_neuron.hw import Device
from tvm_neuron.schedule.kernel import Contraction, Kernel
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.uses import readers_of, writers_of


def order_channels(kernels: list[Kernel], partition_of: Mapping[Tensor, int], device: Device) -> list[Kernel]:
    """The kernels; blocks of channels that only contractions write and read change places where that saves matmuls.

    A block has as many channels as the PE array has columns, so that a writer takes no longer in parts than whole.
    """
    for tensor in dict.fromkeys(k.root.data for k in kernels if isinstance(k.root, Contraction) and k.root.has_zeros):
        if tensor.kind == "temp" and tensor.shape[partition_of[tensor]] > device.pe_rows > device.pe_columns:
            kernels = _ordered(kernels, tensor, partition_of[tensor], device)
    return kernels


def _ordered(kernels: list[Kernel], tensor: Tensor, part: int, device: Device) -> list[Kernel]:
    """The kernels with the blocks of one tensor in the order of who reads them, if these may and should change."""
    readers, writers = readers_of(kernels)[tensor], writers_of(kernels)[tensor]
    size = device.pe_columns
    if not all(_sums_all(kernel, tensor, part, size) for kernel in readers):
        return kernels
    if not all(_writes_blocks(kernel, part, size) for kernel in writers):
        return kernels
    order = _by_reader(readers, size)
    changed = {kernel: [_reading(kernel, order, size)] for kernel in readers}
    if _pe_ps([part for parts in changed.values() for part in parts], device) >= _pe_ps(readers, device):
        return kernels
    changed |= {kernel: [*_writing(kernel, part, order, size)] for kernel in writers}
    return [part for kernel in kernels for part in changed.get(kernel, [kernel])]


def _sums_all(kernel: Kernel, tensor: Tensor, part: int, size: int) -> bool:
    """Whether the kernel reads the tensor for nothing but a sum over all its channels, which are whole blocks."""
    root = kernel.root
    if not isinstance(root, Contraction) or [*kernel.sources()].count(tensor) > 1 or kernel.out is tensor:
        return False
    is_plain = root.data is tensor and root.scale is None and root.maps[part] == Linear(0)
    return is_plain and root.weights.shape[0] == tensor.shape[part] and tensor.shape[part] % size == 0


def _writes_blocks(kernel: Kernel, part: int, size: int) -> bool:
    """Whether the kernel is a contraction that can be cut into parts of one block each."""
    if not isinstance(kernel.root, Contraction) or kernel.root.side or not has_plain_constants(kernel):
        return False
    at = kernel.out_maps[part]
    return at.terms == {kernel.channel: 1} and at.const % size == 0 and kernel.channel.extent % size == 0


def _by_reader(readers: Sequence[Kernel], size: int) -> list[int]:
    """The blocks, those together that the same output channels are made from; else in the order in which they are."""
    met = []
    for kernel in readers:
        assert isinstance(kernel.root, Contraction)
        weights = kernel.root.weights
        there = np.any(weights.reshape(weights.shape[0], -1, weights.shape[-1]), axis=1)
        blocks = np.logical_or.reduceat(there, range(0, there.shape[0], size), axis=0)
        met.append(np.logical_or.reduceat(blocks, range(0, there.shape[1], size), axis=1))
    every = np.concatenate(met, axis=1)
    return sorted(range(len(every)), key=lambda block: (*(~every[block]).tolist(), block))


def _reading(kernel: Kernel, order: Sequence[int], size: int) -> Kernel:
    """The reader with weights in the same order as the blocks."""
    assert isinstance(kernel.root, Contraction)
    rows = np.concatenate([np.arange(block * size, (block + 1) * size) for block in order])
    return replace(kernel, root=replace(kernel.root, weights=kernel.root.weights[rows]))


def _writing(kernel: Kernel, part: int, order: Sequence[int], size: int) -> Iterator[Kernel]:
    """The writer in as few parts as it takes for each block to come to its place."""
    first = kernel.out_maps[part].const // size
    places = [(order.index(first + n), n) for n in range(kernel.channel.extent // size)]
    for _, run in groupby(places, lambda place: place[0] - place[1]):
        (place, low), *others = run
        its = channels_of(kernel, low * size, (1 + len(others)) * size)
        maps = list(its.out_maps)
        maps[part] = Linear(place * size, {its.channel: 1})
        yield replace(its, out_maps=tuple(maps))


def _pe_ps(kernels: Sequence[Kernel], device: Device) -> int:
    return sum(work_of(kernel, device)["pe"] for kernel in kernels)
