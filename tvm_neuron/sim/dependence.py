"""dependent: which dynamic instructions need the result of the one before them on their engine."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.isa import QUEUES, Affine, Tile
from tvm_neuron.isa.engines import ENGINES
from tvm_neuron.program.dynamic import Dynamic, affine_at

Flags = NDArray[np.bool_]
Rows = NDArray[np.int64]


def dependent(dynamic: Dynamic) -> Flags:
    """Whether each instruction reads memory that the one before it on its engine wrote.

    Memory is taken as the rectangle of partitions by bytes from a tile's first to its last, so that interleaved tiles
    count as one.
    """
    found = np.zeros(len(dynamic), bool)
    for engine in ENGINES:
        if not engine.reads_late:
            continue
        rows = np.flatnonzero(dynamic.queue == QUEUES.index(engine.name))
        for before, after in _pairs(dynamic, rows):
            found[after] = _reads_result(dynamic, before, after)
    return found


def _pairs(dynamic: Dynamic, rows: Rows) -> Iterator[tuple[Rows, Rows]]:
    """Neighbours of one queue, those of the same two static instructions together."""
    if len(rows) < 2:
        return
    number = dynamic.number[rows].astype(np.int64)
    kind = number[:-1] * len(dynamic.statics) + number[1:]
    order = np.argsort(kind, kind="stable")
    borders = np.flatnonzero(np.diff(kind[order])) + 1
    for places in np.split(order, borders):
        yield rows[places], rows[places + 1]


def _reads_result(dynamic: Dynamic, before: Rows, after: Rows) -> Flags | bool:
    found: Flags | bool = False
    for _, written in dynamic.statics[dynamic.number[before[0]]].destinations:
        if not isinstance(written, Tile):
            continue
        for _, kind, tile in dynamic.statics[dynamic.number[after[0]]].tiles():
            if kind.role == "reads" and isinstance(tile, Tile) and tile.space == written.space:
                gap = _gap(dynamic, written.offset, tile.offset, before, after)
                across = _gap(dynamic, written.partition, tile.partition, before, after)
                in_bytes = (gap < written.extent_bytes) & (-gap < tile.extent_bytes)
                found |= in_bytes & (across < written.partitions) & (-across < tile.partitions)
    return found


def _gap(dynamic: Dynamic, one: Affine, other: Affine, before: Rows, after: Rows) -> Rows | int:
    """From what `one` is in each instruction of `before` to what `other` is in the one of `after`."""
    if not one.terms and not other.terms:
        return other.at(()) - one.at(())
    return affine_at(other, dynamic.index[after]) - affine_at(one, dynamic.index[before])
