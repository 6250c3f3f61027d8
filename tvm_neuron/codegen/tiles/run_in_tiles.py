"""tile_stage: where tensors exceed SBUF, kernels run some rows (or images) at a time before the next ones go on.

What they make for one another then stays in SBUF, instead of going to DRAM and back between every two of them.
"""

from collections import ChainMap
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import accumulate, islice, product

from tvm_neuron.codegen.stage import Stage
from tvm_neuron.codegen.tiles.ahead import Ahead
from tvm_neuron.codegen.tiles.group import group_of, stationary_bytes
from tvm_neuron.codegen.tiles.park import park
from tvm_neuron.codegen.tiles.rows import Group
from tvm_neuron.codegen.tiles.turns import Batch, in_turns
from tvm_neuron.codegen.tiles.unroll import Unrolled, unroll
from tvm_neuron.codegen.tiles.usage import NEAR, Usage, usage, worth_spilling
from tvm_neuron.codegen.zones import Zones, divide
from tvm_neuron.hw import Device
from tvm_neuron.schedule.tensor import Tensor

MOST_TILES = 1024  # of a group: flattened maps have rows of one element, of which tiles are too short for any engine
TILES = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 80, 104, 152)
SHARES = (0.5, 0.35, 0.7, 1.0)  # of the memory for tensors that what a group leaves behind may take, best first
MANY_TIMES = 16  # what there is for tensors: from there on longer tiles are of more use than more weights ahead
FEW_TIMES = 2  # up to which a little more room for tensors may keep them all in SBUF
LESS_FOR_WEIGHTS = 4  # 1 / this of SBUF, then
_ROWS_AHEAD = (Ahead.TURNS, Ahead.TILE)
_IMAGES_AHEAD = (Ahead.EARLY, Ahead.HALF, Ahead.LATE, Ahead.READ, Ahead.NONE)
MOST_KERNELS = 150  # of a group
SAMPLE = 4  # tiles
MOST_LOADED_AGAIN = 2  # times the ring of weights
_BESIDE = 3  # halves of what tiles multiply by that stay free of tensors, if these take more than their share

_Find = Callable[[int, int, Usage, set[Tensor]], Unrolled | None]


def tile_stage(stage: Stage, device: Device, share: float = 1.0) -> Stage:
    """The stage, its kernels in tiles around steps at which tensors take more than this share of what is for them."""
    ring, zones = division(stage, device)
    most = max(usage(stage.kernels, stage.partition_of, stage.dtypes, stage.in_dram()).alive)
    if most > MANY_TIMES * zones.tensors_bytes:
        weights_share = max(stage.tuning.weights_share, LESS_FOR_WEIGHTS)
        stage = replace(stage, tuning=replace(stage.tuning, weights_share=weights_share))
        ring, zones = division(stage, device)
    tiling = _Tiling(stage, int(share * zones.tensors_bytes), ring, device)
    tiling.run()
    return replace(
        stage, kernels=tiling.kernels, partition_of=tiling.partition_of, dtypes=tiling.dtypes,
        spilled=stage.spilled | tiling.spilled,
    )  # fmt: skip


def with_less_for_weights(stage: Stage, device: Device) -> Stage | None:
    """The stage with more room for tensors, if these take not much more than there is for them."""
    _, zones = division(stage, device)
    most = max(usage(stage.kernels, stage.partition_of, stage.dtypes, stage.in_dram()).alive)
    if most > FEW_TIMES * zones.tensors_bytes or stage.tuning.weights_share >= LESS_FOR_WEIGHTS:
        return None
    return replace(stage, tuning=replace(stage.tuning, weights_share=LESS_FOR_WEIGHTS))


def division(stage: Stage, device: Device) -> tuple[int, Zones]:
    """The bytes of each partition for weights on their way, and the zones that these leave."""
    ring = stage.tuning.weights_bytes(device)
    return ring, divide(stage.kernels, stage.partition_of, device, 0, ring)


class _Tiling:
    def __init__(self, stage: Stage, capacity: int, weights_capacity: int, device: Device) -> None:
        self.device = device
        self.kernels = stage.kernels
        self.partition_of, self.dtypes = dict(stage.partition_of), dict(stage.dtypes)
        self.capacity, self.weights_capacity = capacity, weights_capacity
        # Tensors may take so much of what is for weights where that saves cutting kernels, or cutting them small.
        less = device.sbuf_bytes_per_partition // LESS_FOR_WEIGHTS
        self.spare = max(0, min(weights_capacity - less, weights_capacity // LESS_FOR_WEIGHTS))
        self.outside = stage.in_dram()
        self.spilled: set[Tensor] = set()
        self.weights: list[int] = []  # bytes of each partition that those of the kernels before each step take
        self.failed: set[tuple[_Find, int, int, frozenset[Tensor]]] = set()  # while the kernels stay as they are

    @property
    def in_dram(self) -> set[Tensor]:
        """What is not kept in SBUF as a whole."""
        return self.outside | self.spilled

    def run(self) -> None:
        """Tiles group after group."""
        at = 0
        while True:
            kernels = self.kernels
            now = usage(kernels, self.partition_of, self.dtypes, self.in_dram, self.spilled)
            taken = (stationary_bytes([kernel], self.partition_of) for kernel in kernels)
            self.weights, self.failed = list(accumulate(taken, initial=0)), set()
            while self.kernels is kernels:
                step = next((s for s in range(at, len(kernels)) if self._is_too_large(s, now)), None)
                if step is None:
                    return
                at = self._tile(step, at, now)

    def _is_too_large(self, step: int, now: Usage) -> bool:
        kernel = self.kernels[step]
        is_staged = not kernel.by_dma and not self.spilled.isdisjoint((kernel.out, *kernel.sources()))
        return now.alive[step] > self.capacity + self.spare or is_staged

    def _tile(self, step: int, at: int, now: Usage) -> int:
        """Tiles the kernels around `step`: by images, by rows, or by rows of each image; where to go on."""
        ranges = list(self._ranges(step, at, now))
        by_crossing = sorted(ranges, key=lambda found: now.crossing[found[1]])
        finders = (self._images, self._turns, self._single_images, self._rows)
        for find in finders:
            order = by_crossing if find == self._single_images else ranges
            for first, end, spilled in order:
                found = self._tried(find, first, end, now, spilled)
                if found is not None:
                    stop = self._last_use(first, end, now) if find == self._turns else end
                    after = self._put(first, stop, found, spilled)
                    return after - len(found.kernels) if find == self._single_images else after
        for first, end, spilled in self._through_dram(step, at, now):
            for find in (self._images, self._rows):  # what needs all rows of an image has no tiles of these
                found = self._tried(find, first, end, now, spilled)
                if found is not None:
                    return self._put(first, end, found, spilled)
        return step + 1

    def _tried(self, find: _Find, first: int, end: int, now: Usage, spilled: set[Tensor]) -> Unrolled | None:
        """What is found; steps behind each other ask for the same groups."""
        key = find, first, end, frozenset(spilled)
        found = None if key in self.failed else find(first, end, now, self.in_dram | spilled)
        if found is None:
            self.failed.add(key)
        return found

    def _put(self, first: int, end: int, found: Unrolled, spilled: set[Tensor]) -> int:
        """Puts the tiles in the place of kernels; the step after them."""
        for tensor in sorted(spilled, key=lambda found: found.name):
            first, end = self._spill(tensor, first, end)
        self.partition_of |= found.partition_of
        self.dtypes |= found.dtypes
        self.kernels = [*self.kernels[:first], *found.kernels, *self.kernels[end:]]
        return first + len(found.kernels)

    def _spill(self, tensor: Tensor, first: int, end: int) -> tuple[int, int]:
        """Gives the tensor's memory to a group of kernels; where the group is then."""
        parked = park(self.kernels, first, end, tensor, self.partition_of)
        if parked is None:
            self.spilled.add(tensor)
            return first, end
        self.spilled.add(parked.stored)
        self.kernels = parked.kernels
        for new in (parked.stored, parked.other):
            self.partition_of[new], self.dtypes[new] = self.partition_of[tensor], self.dtypes[tensor]
        return parked.first, parked.end

    def _through_dram(self, step: int, at: int, now: Usage) -> Iterator[tuple[int, int, set[Tensor]]]:
        """Groups around the step that leave all they make for others in DRAM; those that leave least there first."""
        first = next((s for s in range(step, at - 1, -1) if self._crossing(s, now) <= self.capacity // 2), step)
        found = []
        for end in range(step + 1, min(len(self.kernels), step + MOST_KERNELS) + 1):
            if self._weights_bytes(first, end) > self.weights_capacity:
                break
            made = {k.out for k in self.kernels[first:end]}
            results = {t for t in made if t in now.sizes and now.life[t][1] >= end}
            found.append((sum(now.sizes[t] for t in results), -end, results))
        for _, end, results in sorted(found, key=lambda group: group[:2]):
            yield first, -end, results

    def _crossing(self, step: int, now: Usage) -> int:
        """Bytes of each partition that are alive before and after the step; what is in DRAM is not."""
        return sum(now.sizes[tensor] for tensor in now.across[step])

    def _ranges(self, step: int, at: int, now: Usage) -> Iterator[tuple[int, int, set[Tensor]]]:
        """Groups around the step, from where little is alive to where little is again; what goes to DRAM for that.

        That is nothing in the first ones, then what lies idle for long.
        """
        last = min(len(self.kernels), step + MOST_KERNELS)
        tried = set()
        for near in (len(self.kernels), NEAR):
            idle = now.idle(at, last, near)
            least = {s: now.crossing[s] - sum(now.sizes[t] for t in tensors) for s, tensors in idle.items()}
            for share in SHARES:
                most = share * self.capacity
                first = next((s for s in range(step, at - 1, -1) if least[s] <= most), None)
                for end in self._range_ends([s for s in range(step + 1, last + 1) if least[s] <= most], now):
                    if first is not None and (first, end, near) not in tried:
                        tried.add((first, end, near))
                        yield first, end, worth_spilling(idle[end], now, end, most)

    def _range_ends(self, ends: list[int], now: Usage) -> list[int]:
        """Of these steps the first near which the kernels after it fit, and the first of all."""
        quiet = (s for s in ends[:NEAR] if max(now.alive[s : s + NEAR], default=0) <= self.capacity)
        return list(dict.fromkeys([*islice(quiet, 1), *ends[:1]]))

    def _images(self, first: int, end: int, now: Usage, in_dram: set[Tensor]) -> Unrolled | None:
        return self._unrolled(first, end, 0, now, in_dram)

    def _rows(self, first: int, end: int, now: Usage, in_dram: set[Tensor]) -> Unrolled | None:
        found = (self._unrolled(first, end, dim, now, in_dram) for dim in range(1, 4))
        return next((unrolled for unrolled in found if unrolled is not None), None)

    def _last_use(self, first: int, end: int, now: Usage) -> int:
        """The step after the last that reads what these kernels make."""
        return 1 + max(now.life[kernel.out][1] for kernel in self.kernels[first:end])

    def _turns(self, first: int, end: int, now: Usage, in_dram: set[Tensor]) -> Unrolled | None:
        """A few images at a time, where the weights are too many to come for one image after the other."""
        if self._weights_bytes(first, end) > MOST_LOADED_AGAIN * self.weights_capacity:
            return None
        stop, ring = self._last_use(first, end, now), self.weights_capacity // 2
        outside = {t for t, (begin, last) in now.life.items() if begin < first or last >= stop}
        batch = Batch(self.kernels[first:stop], end - first, outside, in_dram, self.partition_of, self.dtypes)
        capacity = self.capacity + self.weights_capacity - ring
        found = in_turns(batch, capacity, ring, self.device)
        return next((turns for turns in found if self._peak(first, stop, turns, now, in_dram) <= capacity), None)

    def _single_images(self, first: int, end: int, now: Usage, in_dram: set[Tensor]) -> Unrolled | None:
        """One image after the other though they don't fit yet: each is then cut further. They load weights again."""
        group = self._group(first, end, 0, now, in_dram)
        if group is None or self._weights_bytes(first, end) > MOST_LOADED_AGAIN * self.weights_capacity:
            return None
        found = unroll(group, group.fewest_rows, frozenset(in_dram & group.results), Ahead.NONE)
        most = max(now.alive[first:end]) / 2
        return found if found is not None and self._peak(first, end, found, now, in_dram) < most else None

    def _weights_bytes(self, first: int, end: int) -> int:
        return self.weights[end] - self.weights[first]

    def _group(self, first: int, end: int, dim: int, now: Usage, in_dram: set[Tensor]) -> Group | None:
        kernels, before = tuple(self.kernels[first:end]), islice(self.kernels, first)
        after = {kernel.out for kernel in kernels if now.life[kernel.out][1] >= end}
        return group_of(kernels, dim, before, after, in_dram, self.partition_of, self.dtypes)

    def _unrolled(self, first: int, end: int, dim: int, now: Usage, in_dram: set[Tensor]) -> Unrolled | None:
        """The kernels in as few tiles along the dimension as fit; None if none do."""
        if self._weights_bytes(first, end) > self.weights_capacity:
            return None  # they would have to come again for each tile
        group = self._group(first, end, dim, now, in_dram)
        if group is None or now.least_with_tiles(first, end, in_dram) > self._capacity(first, end):
            return None
        most = min(group.fewest_rows, MOST_TILES)
        counts = [*(tiles for tiles in TILES if tiles < most), most]
        fits = partial(self._if_fits, group, first=first, end=end, now=now, in_dram=in_dram)
        aheads = (ahead for ahead in (_ROWS_AHEAD if dim else _IMAGES_AHEAD) if fits(most, ahead, of=SAMPLE))
        # An image that comes early is worth more tiles, since its work is long; rows run in as few tiles as fit.
        tries = product(counts, list(aheads)) if dim else ((tiles, ahead) for ahead in aheads for tiles in counts)
        return next((found for tiles, ahead in tries if (found := fits(tiles, ahead)) is not None), None)

    def _if_fits(
        self, group: Group, tiles: int, ahead: Ahead, first: int, end: int, now: Usage, in_dram: set[Tensor],
        of: int | None = None,
    ) -> Unrolled | None:  # fmt: skip
        """So many tiles, or the first `of` them; None if these don't fit."""
        stored = frozenset(in_dram & group.results)
        capacity, found = self._capacity(first, end), None
        # A few tiles take no more than all do, and tell most of what does not fit.
        for most in (of,) if of or tiles <= SAMPLE else (SAMPLE, of):
            found = unroll(group, tiles, stored, ahead, most)
            if found is None or self._peak(first, end, found, now, in_dram) > capacity:
                return None
        return found

    def _capacity(self, first: int, end: int) -> int:
        """For tensors; the weights stay for all tiles, beside those of the kernels after these."""
        weights = self._weights_bytes(first, end)
        return self.capacity + max(0, min(self.spare, self.weights_capacity - _BESIDE * weights // 2))

    def _peak(self, first: int, end: int, found: Unrolled, now: Usage, in_dram: set[Tensor]) -> int:
        """The most bytes that are alive at once with these kernels instead, of which first tiles may have none."""
        partition_of = ChainMap(found.partition_of, self.partition_of)
        dtypes = ChainMap(found.dtypes, self.dtypes)
        return now.most_with(found.kernels, first, end, partition_of, dtypes, in_dram)
