"""run_in_tiles: where tensors exceed SBUF, kernels run some rows (or images) at a time before the next ones go on.

What they make for one another then stays in SBUF, instead of going to DRAM and back between every two of them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tvm_neuron.codegen.simplify import weights_bytes
from tvm_neuron.codegen.stage import Stage
from tvm_neuron.codegen.tiles.rows import Group
from tvm_neuron.codegen.tiles.tiled_dims import tiled_dims
from tvm_neuron.codegen.tiles.unroll import Unrolled, unroll
from tvm_neuron.codegen.tiles.usage import Usage, bytes_of, usage
from tvm_neuron.codegen.zones import divide
from tvm_neuron.hw import Device
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.tensor import Tensor

TILES = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
SHARES = (0.35, 0.5, 0.7, 1.0)  # of the memory for tensors that what a group leaves behind may take, best first
MOST_KERNELS = 150  # of a group


def tile_stage(stage: Stage, device: Device) -> Stage:
    """The stage, its kernels in tiles around steps at which more tensors are alive than fit beside the weights."""
    zones = divide(stage.kernels, stage.partition_of, device, 0, weights_bytes(device))
    tiling = _Tiling(stage, zones.tensors_bytes)
    tiling.run()
    return replace(stage, kernels=tiling.kernels, partition_of=tiling.partition_of, dtypes=tiling.dtypes)


class _Tiling:
    def __init__(self, stage: Stage, capacity: int) -> None:
        self.kernels = stage.kernels
        self.partition_of, self.dtypes, self.capacity = dict(stage.partition_of), dict(stage.dtypes), capacity
        self.in_dram = stage.in_dram()

    def run(self) -> None:
        """Tiles group after group."""
        at = 0
        while True:
            now = self._usage(self.kernels)
            step = next((s for s in range(at, len(self.kernels)) if now.alive[s] > self.capacity), None)
            if step is None:
                return
            at = self._tile(step, at, now)

    def _usage(self, kernels: Sequence[Kernel]) -> Usage:
        return usage(kernels, self.partition_of, self.dtypes, self.in_dram)

    def _tile(self, step: int, at: int, now: Usage) -> int:
        """Tiles the kernels around `step`; where to go on."""
        for first, end in self._ranges(step, at, now):
            found = self._unrolled(first, end, now)
            if found is not None:
                self.partition_of |= found.partition_of
                self.dtypes |= found.dtypes
                self.kernels = [*self.kernels[:first], *found.kernels, *self.kernels[end:]]
                return first + len(found.kernels)
        return step + 1

    def _ranges(self, step: int, at: int, now: Usage) -> Iterator[tuple[int, int]]:
        """Groups around the step, from where little is alive to where little is alive again."""
        tried = set()
        for share in SHARES:
            most = share * self.capacity
            last = min(len(self.kernels), step + MOST_KERNELS)
            end = next((s for s in range(step + 1, last + 1) if now.crossing[s] <= most), None)
            first = next((s for s in range(step, at - 1, -1) if now.crossing[s] <= most), None)
            if first is not None and end is not None and (first, end) not in tried:
                tried.add((first, end))
                yield first, end

    def _unrolled(self, first: int, end: int, now: Usage) -> Unrolled | None:
        """The kernels in as few tiles as fit; None if none do."""
        kernels = tuple(self.kernels[first:end])
        made = {kernel.out for kernel in kernels}
        results = frozenset(t for t in made if now.life[t][1] >= end or t in self.in_dram)
        if any(now.life[t][0] < first for t in made):
            return None
        for dim in range(4):
            if not all(_is_cut(tensor, dim, self.partition_of) for tensor in results):
                continue
            dims = tiled_dims(kernels, self.partition_of, dict.fromkeys(results, dim))
            if dims is None or any(k.out not in dims for k in kernels):
                continue
            group = Group(kernels, dims, results, self._brought(kernels, made, dims), self.partition_of)
            rows = min(tensor.shape[dim] for tensor in results)
            for tiles in (n for n in TILES if n <= rows):
                found = unroll(group, tiles, self.dtypes, frozenset(self.in_dram & results))
                if self._fits(first, end, found):
                    return found
        return None

    def _brought(
        self, kernels: Sequence[Kernel], made: set[Tensor], dims: Mapping[Tensor, int]
    ) -> frozenset[Tensor]:
        """Tensors in DRAM that engines read, and those that only DMA and fills make from there."""
        read = {t for k in kernels if not k.by_dma for t in k.sources()}
        found = {t for t in read if t in self.in_dram and t not in made and t in dims}
        for tensor in made:
            writers = [k for k in kernels if k.out is tensor]
            sources = {t for k in writers for t in k.sources()}
            if sources and sources <= self.in_dram - made and all(k.by_dma or not any(k.sources()) for k in writers):
                found.add(tensor)
        return frozenset(found)

    def _fits(self, first: int, end: int, found: Unrolled) -> bool:
        kernels = [*self.kernels[:first], *found.kernels, *self.kernels[end:]]
        now = usage(kernels, self.partition_of | found.partition_of, self.dtypes | found.dtypes, self.in_dram)
        return max(now.alive[first : first + len(found.kernels)]) <= self.capacity

    def _bytes(self, tensor: Tensor) -> int:
        return bytes_of(tensor, self.partition_of, self.dtypes)


def _is_cut(tensor: Tensor, dim: int, partition_of: Mapping[Tensor, int]) -> bool:
    """Whether the dimension can be cut: rows (or images) of which there are several, whose elements lie together."""
    rank = len(tensor.shape)
    return dim < rank - 1 and tensor.shape[dim] > 1 and partition_of[tensor] != dim
