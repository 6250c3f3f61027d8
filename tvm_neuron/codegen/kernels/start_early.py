"""start_early: arithmetic on a tensor of several writers runs for what the first ones wrote while the last one works.

A norm after a concatenation reads what many layers made. Only the channels of the newest have to wait for it; others
come before it, so that the PE array, which needs them all, waits for little.
"""

from collections.abc import Mapping

from tvm_neuron.allocation.regions import Box, box, overlaps, source_maps, whole
from tvm_neuron.codegen.kernels.channels import channels_of, has_plain_constants
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import PARTITIONS

_Writers = dict[Tensor, list[tuple[int, Box]]]  # place in the list of kernels, and what is written there


def start_early(kernels: list[Kernel], partition_of: Mapping[Tensor, int]) -> list[Kernel]:
    """The kernels; whole chunks of partitions that don't need the last writer of their sources come before it."""
    writers: _Writers = {}
    for number, kernel in enumerate(kernels):
        writers.setdefault(kernel.out, []).append((number, box(kernel.out_maps, whole(kernel))))
    before: dict[int, list[Kernel]] = {}
    late: dict[int, Kernel] = {}
    for number, kernel in enumerate(kernels):
        if _can_be_cut(kernel, partition_of) and _writes_alone(kernel, writers):
            channels, place = _early(kernel, number, partition_of, writers)
            if channels:
                before.setdefault(place, []).append(channels_of(kernel, 0, channels))
                late[number] = channels_of(kernel, channels, kernel.channel.extent - channels)
    return [part for n, kernel in enumerate(kernels) for part in (*before.get(n, ()), late.get(n, kernel))]


def _can_be_cut(kernel: Kernel, partition_of: Mapping[Tensor, int]) -> bool:
    """Whether it is arithmetic on more than a chunk of partitions, which begin where a chunk does on all sides."""
    if kernel.root is not None or kernel.by_dma or kernel.channel.extent <= PARTITIONS:
        return False
    if not has_plain_constants(kernel):
        return False
    places = [(kernel.out, kernel.out_maps)]
    for tensor in dict.fromkeys(kernel.sources()):
        places += [(tensor, maps) for maps in source_maps(kernel, tensor, partition_of[tensor])]
    parts = [maps[partition_of[tensor]] if maps else None for tensor, maps in places]
    return all(p is not None and p.terms == {kernel.channel: 1} and p.const % PARTITIONS == 0 for p in parts)


def _writes_alone(kernel: Kernel, writers: _Writers) -> bool:
    """Whether no other kernel writes the same elements; a border is written by others."""
    here = box(kernel.out_maps, whole(kernel))
    return sum(overlaps(here, there) for _, there in writers[kernel.out]) == 1


def _early(kernel: Kernel, number: int, partition_of: Mapping[Tensor, int], writers: _Writers) -> tuple[int, int]:
    """How many channels need nothing of the last writer of its sources, and that writer's place; or (0, 0)."""
    last = _ready(kernel, number, partition_of, writers)
    chunks = (kernel.channel.extent - 1) // PARTITIONS
    for channels in range(chunks * PARTITIONS, 0, -PARTITIONS):
        if _ready(channels_of(kernel, 0, channels), number, partition_of, writers) < last:
            return channels, last
    return 0, 0


def _ready(kernel: Kernel, number: int, partition_of: Mapping[Tensor, int], writers: _Writers) -> int:
    """The place of the last kernel before `number` that writes what it reads; -1 if none does."""
    found = -1
    for tensor in dict.fromkeys(kernel.sources()):
        for maps in source_maps(kernel, tensor, partition_of[tensor]):
            here = box(maps, whole(kernel))
            places = [place for place, there in writers.get(tensor, ()) if place < number and overlaps(here, there)]
            found = max(found, *places, -1)
    return found
