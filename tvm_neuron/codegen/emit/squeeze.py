"""Squeeze: brings the access patterns of one instruction to a common shape with few dimensions."""

from collections.abc import Sequence
from dataclasses import replace

from tvm_neuron.isa import DramTile, Tile


class Squeeze:
    """Drops dimensions of one element and joins neighbours that all the given patterns step through evenly."""

    def __init__(self, patterns: Sequence[Tile | DramTile], leading: int = 0) -> None:
        """`leading` dimensions of each pattern (a DRAM tile's channel) stay as they are."""
        free = [p.dims[leading:] if isinstance(p, DramTile) else p.dims for p in patterns]
        columns = list(zip(*free, strict=True))
        self.groups: list[list[int]] = []
        for i, column in enumerate(columns):
            if column[0][1] == 1:
                continue
            if self.groups:
                inner = column
                outer = columns[self.groups[-1][-1]]
                if all(o[0] == n[0] * n[1] for o, n in zip(outer, inner, strict=True)):
                    self.groups[-1].append(i)
                    continue
            self.groups.append([i])

    def __call__(self, pattern: Tile) -> Tile:
        """The pattern in the common shape."""
        return replace(pattern, dims=self.dims(pattern.dims))

    def dims(self, dims: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
        """Free dimensions in the common shape."""
        joined = []
        for group in self.groups:
            count = 1
            for i in group:
                count *= dims[i][1]
            joined.append((dims[group[-1]][0], count))
        return tuple(joined) or ((1, 1),)
