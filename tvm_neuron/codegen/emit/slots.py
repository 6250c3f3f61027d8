"""Slots: [128 columns, pitch] numbers on each partition of SBUF, all zero but for column p of partition p."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from tvm_neuron.isa import Affine, Instruction, Memset, Tile
from tvm_neuron.schedule.tiling import PARTITIONS

ITEM = 2  # bytes of a number: bfloat16 or float16, whose zeros are the same


@dataclass
class Slots:
    """From byte `base` of each partition on. The `pitch` numbers of a column are handed out in turns."""

    base: int = 0
    pitch: int = 0
    _next: int = field(default=0, init=False)
    _zeroed: int = field(default=0, init=False)

    @property
    def bytes_per_partition(self) -> int:
        """What all columns take."""
        return PARTITIONS * self.pitch * ITEM

    @property
    def left(self) -> int:
        """How many numbers of each column were not made zero yet."""
        return self.pitch - self._zeroed

    def take(self, count: int) -> int:
        """The first of the next `count` numbers of a column."""
        at = self._next if self._next + count <= self.pitch else 0
        self._next = at + count
        return at

    def zero(self, count: int) -> Iterator[Instruction]:
        """What makes the next `count` numbers of all columns zero, as far as these were not."""
        count = min(count, self.left)
        if count > 0:
            offset, dims = Affine(self.base + self._zeroed * ITEM), ((self.pitch, PARTITIONS), (1, count))
            self._zeroed += count
            yield Memset(result=Tile("sbuf", "bfloat16", Affine(), PARTITIONS, offset, dims), value=0.0)

    def zero_until(self, end: int) -> Iterator[Instruction]:
        """The same with all numbers before `end`."""
        return self.zero(end - self._zeroed)
