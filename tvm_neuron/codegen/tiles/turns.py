"""in_turns: the first layers for a few images at a time, so that their weights come for several images at once.

Of each turn, what comes from DRAM runs tile by tile (the head), then large maps run image by image, which fit beside
one another no more; small maps with much larger weights run layer by layer. Amid all these, where the PE array has
work of its own, come the tiles of the next turn's heads, for which it would wait otherwise.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

from tvm_neuron.allocation.layouts import bytes_on_chip
from tvm_neuron.codegen.overlap.in_parts import by_image, cut_tensors, first_axis, part_of
from tvm_neuron.codegen.tiles.ahead import Ahead
from tvm_neuron.codegen.tiles.group import group_of, stationary_bytes
from tvm_neuron.codegen.tiles.head import head_length, slots_of, spread
from tvm_neuron.codegen.tiles.restrict import Rows, restrict
from tvm_neuron.codegen.tiles.unroll import Unrolled, unroll
from tvm_neuron.codegen.tiles.usage import usage
from tvm_neuron.hw import Device
from tvm_neuron.schedule.expr import Axis
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.tensor import Tensor

SIZES = (4, 2)  # images of a turn
TILES = (4, 8, 14, 16, 28, 56)  # of an image's head
HEAD_SHARE = 3  # 1 / this of the memory for tensors, for what a head holds at once
_WEIGHTS_FIRST = 0.75  # of the first image's work comes before the next one's head: all weights are asked for by then


@dataclass(frozen=True)
class Batch:
    """Kernels over several images; `count` of them run in turns, the others up to the last that reads what those make.

    `outside` is what other kernels made, began or need later, of which all images stay in one tensor.
    """

    kernels: Sequence[Kernel]
    count: int
    outside: Set[Tensor]
    in_dram: set[Tensor]
    partition_of: Mapping[Tensor, int]
    dtypes: Mapping[Tensor, str]


def in_turns(batch: Batch, capacity: int, ring_bytes: int, device: Device) -> Iterator[Unrolled]:
    """The kernels in turns of some images, those first that load the fewest weights again.

    Tensors may take `capacity` bytes of each partition; weights of at most `ring_bytes` are kept for the next image.
    """
    kernels, count, images = batch.kernels, batch.count, batch.kernels[batch.count - 1].out.shape[0]
    made = {kernel.out for kernel in kernels[:count]}
    turned = [*kernels[:count], *(k for k in kernels[count:] if not made.isdisjoint(k.sources()))]
    axes = {kernel: axis for kernel in turned if (axis := first_axis(kernel, images))}
    if len(axes) < len(turned) or not made.issubset(by_image(kernels[:count], axes, batch.partition_of)):
        return  # one needs other images than its own, which come later
    cut = {t for t in cut_tensors(kernels, axes, batch.partition_of) if t not in batch.outside | batch.in_dram}
    head = head_length(kernels[:count], batch.in_dram)
    found: list[tuple[int, _Turns]] = []
    for size in SIZES:
        turns = _Turns(batch, axes, cut, images, size, head, head, capacity, device)
        single = turns.first_together() if size < images and head else None
        if single is not None:
            parts = kernels[head:single], kernels[single:count]
            early, late = (stationary_bytes(part, batch.partition_of) for part in parts)
            loads = (early * (1 if early <= ring_bytes else size) + late) * -(-images // size)
            found.append((loads, _Turns(batch, axes, cut, images, size, head, single, capacity, device)))
    for _, turns in sorted(found, key=lambda pair: pair[0]):
        yield turns.run()


@dataclass
class _Turns:
    batch: Batch
    axes: Mapping[Kernel, Axis]
    cut: Set[Tensor]  # of which each image has its own
    images: int
    size: int  # of a turn
    head: int  # kernels that run in tiles
    single: int  # kernels up to here run image by image
    capacity: int
    device: Device
    made: Unrolled = field(default_factory=Unrolled)
    parts: dict[tuple[Tensor, int], Rows] = field(default_factory=dict)

    def run(self) -> Unrolled:
        """All turns, then the kernels that read what they make."""
        kernels, count = self.batch.kernels, self.batch.count
        found = at_slots(self._tiles(0))
        slots = {image: slots_of(self._tiles(image)) for image in range(1, self.images)}
        for low in range(0, self.images, self.size):
            turn = range(low, min(low + self.size, self.images))
            work = [self._pieces(kernels[self.head : self.single], image) for image in turn]
            if low == 0:  # the others of the first turn come amid the first's end
                first = work.pop(0)
                begin = int(len(first) * _WEIGHTS_FIRST)
                coming_first = [slot for image in turn[1:] for slot in slots[image]]
                found += first[:begin] + spread(coming_first, first[begin:], self.device)
            work.append([self._piece(k, image) for k in kernels[self.single : count] for image in turn])
            coming = range(turn.stop, min(turn.stop + self.size, self.images))
            every = [kernel for part in work for kernel in part]
            found += spread([s for image in coming for s in slots[image]], every, self.device)
        for kernel in kernels[count:]:
            is_cut = not self.cut.isdisjoint(kernel.tensors)
            found += [self._piece(kernel, image) for image in range(self.images)] if is_cut else [kernel]
        self.made.kernels = found
        return self.made

    def first_together(self) -> int | None:
        """The first kernel from where on all images of a turn fit, beside the heads of the next; None if none does."""
        batch = self.batch
        alone = batch.in_dram | (set(batch.partition_of) - self.cut)
        alive = usage(batch.kernels[: batch.count], batch.partition_of, batch.dtypes, alone).alive
        later = {tensor for kernel in batch.kernels[batch.count :] for tensor in kernel.tensors}
        made = {kernel.out for kernel in batch.kernels[: batch.count]}
        results = sum(self._image_bytes(tensor) for tensor in made & self.cut & later)
        waiting = self._image_bytes(batch.kernels[self.head - 1].out) * (self.size - 1)
        room = self.capacity - self._most(at_slots(self._tiles(0))) - waiting
        room -= results * (self.images - 2 * self.size)
        steps = range(self.head, batch.count)
        return next((step for step in steps if max(alive[step:]) // self.images * self.size <= room), None)

    def _image_bytes(self, tensor: Tensor) -> int:
        size = bytes_on_chip(self.batch.dtypes[tensor], self.batch.partition_of[tensor], tensor.shape)
        return size // self.images

    def _pieces(self, kernels: Sequence[Kernel], image: int) -> list[Kernel]:
        return [self._piece(kernel, image) for kernel in kernels]

    def _piece(self, kernel: Kernel, image: int) -> Kernel:
        places = {tensor: self._part(tensor, image) for tensor in kernel.tensors if tensor in self.cut}
        return restrict(kernel, self.axes[kernel], image, image + 1, places)

    def _part(self, tensor: Tensor, image: int) -> Rows:
        if (tensor, image) not in self.parts:
            part = part_of(tensor, image, 1)
            self.parts[tensor, image] = Rows(part, 0, image)
            self.made.partition_of[part] = self.batch.partition_of[tensor]
            self.made.dtypes[part] = self.batch.dtypes[tensor]
        return self.parts[tensor, image]

    def _tiles(self, image: int) -> list[Kernel]:
        """The head of an image, in as few tiles as hold little at once."""
        kernels = tuple(self._pieces(self.batch.kernels[: self.head], image))
        later = {tensor for kernel in self.batch.kernels[self.head :] for tensor in kernel.tensors}
        after = {self._part(t, image).tensor if t in self.cut else t for t in later | self.batch.outside}
        for dim in (2, 3):
            group = group_of(kernels, dim, (), after, self.batch.in_dram, *self._known())
            for tiles in TILES if group else ():
                assert group is not None
                found = unroll(group, tiles, frozenset(), Ahead.TILE)
                if found is None:
                    continue
                if self._most(at_slots(found.kernels), found) <= self.capacity // HEAD_SHARE:
                    self.made.partition_of |= found.partition_of
                    self.made.dtypes |= found.dtypes
                    return found.kernels
        return list(kernels)

    def _known(self) -> tuple[dict[Tensor, int], dict[Tensor, str]]:
        return {**self.batch.partition_of, **self.made.partition_of}, {**self.batch.dtypes, **self.made.dtypes}

    def _most(self, kernels: Sequence[Kernel], more: Unrolled | None = None) -> int:
        """The most bytes of a partition that the kernels need at once."""
        partition_of, dtypes = self._known()
        more = more or Unrolled()
        now = usage(kernels, partition_of | more.partition_of, dtypes | more.dtypes, self.batch.in_dram)
        return max(now.alive)


def at_slots(tiles: Sequence[Kernel]) -> list[Kernel]:
    """The tiles in the order of their slots."""
    return [kernel for slot in slots_of(tiles) for kernel in slot]
