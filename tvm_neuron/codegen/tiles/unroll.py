"""unroll: the kernels of a group one tile after the other; rows that the next tile reads again are carried over.

Rows are carried in a small tensor of their own, since a tile's tensors give their memory to others once it is done.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tvm_neuron.codegen.tiles.ahead import Ahead, first_kernels, halves, last_reader
from tvm_neuron.codegen.tiles.copies import copy_of
from tvm_neuron.codegen.tiles.restrict import Rows, restrict
from tvm_neuron.codegen.tiles.rows import Group, Held, channels, cut_of, rows_of
from tvm_neuron.program import Origin
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.uses import writers_of


@dataclass
class Unrolled:
    """`kernels` in order; `partition_of` and `dtypes` of their new tensors."""

    kernels: list[Kernel] = field(default_factory=list)
    partition_of: dict[Tensor, int] = field(default_factory=dict)
    dtypes: dict[Tensor, str] = field(default_factory=dict)


def unroll(
    group: Group, tiles: int, in_dram: frozenset[Tensor], ahead: Ahead = Ahead.TILE, most: int | None = None
) -> Unrolled | None:
    """The group in so many tiles, or the first `most` of them; None if it can't be had in tiles, see `rows_of`.

    Results that are `in_dram` are stored there, whole rows at a time.
    """
    rows = rows_of(group, tiles)
    return _Unroll(group, rows, in_dram).run(ahead, min(most or len(rows), len(rows))) if rows else None


class _Unroll:
    def __init__(self, group: Group, rows: list[dict[Tensor, Held]], in_dram: frozenset[Tensor]) -> None:
        self.group, self.rows, self.in_dram = group, rows, in_dram
        self.made = Unrolled()
        self.kept: list[dict[Tensor, Rows]] = [{} for _ in rows]  # what a tile leaves for later ones
        self.placed: list[dict[Tensor, Rows]] = [{} for _ in rows]
        self.writers = writers_of(group.kernels)
        self.origin = {tensor: kernels[0].origins[0] for tensor, kernels in self.writers.items()}

    def run(self, ahead: Ahead, tiles: int) -> Unrolled | None:
        """The first so many tiles."""
        kernels = self.group.kernels
        if ahead is Ahead.TURNS:
            return self._in_turns(tiles)
        head = first_kernels(self.group)
        begin = head + int((len(kernels) - head) * ahead.before_next)
        for tile in range(tiles):
            if tile == 0 or ahead is Ahead.NONE:
                self._bring(tile)
            if tile == 0 or begin == len(kernels):
                if ahead is Ahead.TILE:
                    self._bring(tile + 1)
                self._work(tile, kernels[:head])
            if ahead not in (Ahead.NONE, Ahead.TILE):
                self._bring(tile + 1)
            self._work(tile, kernels[head:begin])
            if begin < len(kernels) and tile + 1 < len(self.rows):
                self._work(tile + 1, kernels[:head])
            self._work(tile, kernels[begin:])
        return self.made

    def _in_turns(self, tiles: int) -> Unrolled | None:
        """While engines finish a kernel of one tile, there is one of the other that does not wait for it."""
        found = halves(self.group, self._carried())
        if found is None:
            return None
        firsts, seconds = found
        read = min(last_reader(self.group), len(firsts))
        self._bring(0)
        self._work(0, firsts[:read])
        self._bring(1)
        self._work(0, firsts[read:])
        for tile in range(tiles):
            done = 0
            for number, kernel in enumerate(seconds, 1):
                self._work(tile, [kernel])
                if tile + 1 < len(self.rows):
                    next_ones = len(firsts) * number // len(seconds)
                    self._work(tile + 1, firsts[done:next_ones])
                    if done < read <= next_ones:
                        self._bring(tile + 2)
                    done = next_ones
        return self.made

    def _carried(self) -> set[Tensor]:
        """Tensors of which a tile leaves rows for later ones."""
        carried = {t for rows in self.rows for t, held in rows.items() if held.low < held.start}
        return {tensor for tensor in carried - self.group.brought if not self._is_whole(tensor)}

    def _bring(self, tile: int) -> None:
        group = self.group
        for tensor in group.brought if tile < len(self.rows) else ():
            held = self.rows[tile][tensor]
            if held.end == held.start:
                continue
            place = self._new(tensor, tile, held)
            if tensor not in self.writers:
                self._copy(tensor, Rows(tensor, group.dims[tensor], 0), place, held.start, held.end, by_dma=True)
            for kernel in self.writers.get(tensor, ()):
                if is_asked_for(kernel):
                    self._restricted(kernel, tile, held)

    def _work(self, tile: int, kernels: Sequence[Kernel]) -> None:
        for kernel in kernels:
            if kernel.out in self.group.brought and is_asked_for(kernel):
                continue
            held = self.rows[tile].get(kernel.out)
            if held is None or cut_of(kernel, self.group.dims[kernel.out], held.start, held.end) is None:
                self._finish(kernel, tile)
                continue
            self._ready(kernel.out, tile)
            for tensor in kernel.sources():
                self._ready(tensor, tile)
            self._restricted(kernel, tile, held)
            self._finish(kernel, tile)

    def _restricted(self, kernel: Kernel, tile: int, held: Held) -> None:
        cut = cut_of(kernel, self.group.dims[kernel.out], held.start, held.end)
        if cut is not None:
            self.made.kernels.append(restrict(kernel, *cut, self.placed[tile]))

    def _ready(self, tensor: Tensor, tile: int) -> None:
        """Gives a tensor its place in this tile, with the rows that earlier tiles made."""
        held = self.rows[tile].get(tensor)
        if held is None or tensor in self.placed[tile] or tensor in self.group.brought or self._is_whole(tensor):
            return
        kept = self._kept(tensor, tile)
        if held.start == held.end and kept is not None:
            self.placed[tile][tensor] = kept
            return
        place, start = self._new(tensor, tile, held), held.start
        if held.low < start and kept is None:  # the group made none of them: all there is of them was made before
            assert tensor in self.group.begun, f"no tile left the rows of {tensor} from {held.low} on"
            start = held.low
        elif held.low < start and kept is not None:
            self._copy(tensor, kept, place, held.low, start)
        if tensor in self.group.begun:
            whole = Rows(tensor, self.group.dims[tensor], 0)
            self._copy(tensor, whole, place, start, held.end, self.group.begun[tensor], by_dma=True)

    def _finish(self, kernel: Kernel, tile: int) -> None:
        """After the last kernel that writes a tensor: stores its rows, carries over those that are needed again."""
        tensor = kernel.out
        held = self.rows[tile].get(tensor)
        if tensor in self.group.brought:
            return
        if kernel is not self.writers[tensor][-1] or held is None or held.start == held.end or self._is_whole(tensor):
            return
        place = self.placed[tile].get(tensor)
        if place is None:
            return  # no kernel writes any of the new rows
        dim = self.group.dims[tensor]
        if tensor in self.group.results:
            written = channels(self.writers[tensor], self.group.partition_of[tensor])
            self._copy(tensor, place, Rows(tensor, dim, 0), held.start, held.end, written, by_dma=True)
        later = self.rows[tile + 1].get(tensor) if tile + 1 < len(self.rows) else None
        if later is not None and later.low < held.end:
            kept = self._tensor(tensor, f"kept{tile}", held.end - later.low)
            self.kept[tile][tensor] = Rows(kept, dim, later.low)
            self._copy(tensor, place, self.kept[tile][tensor], later.low, held.end)

    def _kept(self, tensor: Tensor, tile: int) -> Rows | None:
        """What the last of the earlier tiles that made rows of it left."""
        return next((self.kept[t][tensor] for t in reversed(range(tile)) if tensor in self.kept[t]), None)

    def _is_whole(self, tensor: Tensor) -> bool:
        return tensor in self.group.results and tensor not in self.in_dram

    def _new(self, tensor: Tensor, tile: int, held: Held) -> Rows:
        made = self._tensor(tensor, f"rows{tile}", held.end - held.low)
        self.placed[tile][tensor] = Rows(made, self.group.dims[tensor], held.low)
        return self.placed[tile][tensor]

    def _tensor(self, like: Tensor, name: str, rows: int) -> Tensor:
        shape = list(like.shape)
        shape[self.group.dims[like]] = rows
        made = Tensor(f"{like.name}.{name}", tuple(shape), like.dtype)
        self.made.partition_of[made] = self.group.partition_of[like]
        self.made.dtypes[made] = self.group.dtypes[like]
        return made

    def _copy(
        self, like: Tensor, source: Rows, target: Rows, start: int, end: int,
        some: tuple[int, int] | None = None, by_dma: bool = False,
    ) -> None:  # fmt: skip
        """Copies rows, of all channels or of `some`."""
        part = self.group.partition_of[like]
        first, last = some or (0, like.shape[part])
        shape = list(like.shape)
        shape[source.dim], shape[part] = end - start, last - first
        out_of, into = [0] * len(shape), [0] * len(shape)
        out_of[source.dim], into[source.dim] = start - source.low, start - target.low
        out_of[part] = into[part] = first
        sides = (source.tensor, out_of), (target.tensor, into)
        self.made.kernels.append(copy_of(self._origin(like), shape, part, *sides, by_dma))

    def _origin(self, tensor: Tensor) -> Origin:
        if tensor in self.origin:
            return self.origin[tensor]
        return next(kernel.origins[0] for kernel in self.group.kernels if tensor in kernel.sources())


def is_asked_for(kernel: Kernel) -> bool:
    """Whether it is of what is asked for ahead: engines that work on what has come would wait for it."""
    return kernel.by_dma or not any(kernel.sources())
