"""Kernels by rows: sums along rows and what is computed with them (softmax, normalisations), one row at a time.

A row stays in the cache until it is done. Sums are kept in lanes, so that no addition waits for the one before, and the
lanes added in halves. What is computed element by element has vectors of the same size: a processor hands over what was
just written without a delay only to loads that are no longer than the store.
"""

from math import prod
from typing import Any

from tvm import s_tir

from tvm_neuron.codegen.cpu.blocks import Block

_FEWEST_LANES = 4
_LANES = range(32, _FEWEST_LANES - 1, -1)
"""Partial sums of a row: AVX-512 holds 16 floats, and two vectors overlap."""
_MOST_REPEATED = 1.5
"""How many times as many turns are taken for granted where blocks overlap by chance."""


def schedule_rows(sch: s_tir.Schedule, blocks: list[Block], is_parallel: bool) -> bool:
    """Schedules all blocks by rows of the last; False, with `sch` spoilt, if the others don't fall into its rows.

    Raises ScheduleError where TVM can't prove a step right.
    """
    *others, last = blocks
    depth = min(len(block.spatial) for block in blocks)
    is_whole = len({block.extents[:depth] for block in blocks}) == 1 and all(block.is_inner for block in others)
    if not is_whole or not any(map(_is_sum_along_rows, blocks)):
        return False
    dealt = [_deal_out(sch, block) for block in blocks]
    if depth:
        row = sch.fuse(*sch.get_loops(last.handle)[:depth])
        for block, partials in zip(reversed(blocks), reversed(dealt), strict=True):
            if block is not last:
                sch.compute_at(block.handle, row, preserve_unit_loops=True)
                if _turns(sch, block.handle) > _MOST_REPEATED * block.turns:
                    return False
            for partial in reversed(partials):
                sch.compute_at(partial, row, preserve_unit_loops=True)
        if is_parallel:
            sch.parallel(row)
    summed = [
        (partial, _vectorise_sum(sch, partial, block.reduced if partial is partials[0] else 1, bool(depth)))
        for block, partials in zip(blocks, dealt, strict=True)
        for partial in partials
    ]
    for block in blocks:
        if len(block.spatial) > depth and not block.reduced and block.is_rowwise:
            _vectorise_map(sch, block)
    for partial, loop in summed:  # last: then a sum's block is none any more to TVM
        sch.decompose_reduction(partial, loop)
    return True


def _is_sum_along_rows(block: Block) -> bool:
    return bool(block.reduced) and block.is_rowwise


def _deal_out(sch: s_tir.Schedule, block: Block) -> list[Any]:
    """New blocks: one that adds up in lanes, others of half as many each; `block` itself is left with the last sum."""
    extent = block.extents[-1] if _is_sum_along_rows(block) else None
    lanes = _lanes(extent)
    if lanes in (0, extent):  # a last group of less would need a condition that compute_at loses
        return []
    partials = []
    while lanes >= _FEWEST_LANES:
        _, lane = sch.split(sch.get_loops(block.handle)[-1], [None, lanes])
        partials.append(sch.rfactor(lane, len(block.spatial)))
        lanes = 0 if lanes % 2 else lanes // 2
    return partials


def _lanes(extent: int | None) -> int:
    """0 if it can't be dealt out evenly."""
    return 0 if extent is None else next((lanes for lanes in _LANES if extent % lanes == 0), 0)


def _vectorise_sum(sch: s_tir.Schedule, partial: Any, reduced: int, is_in_row: bool) -> Any:
    """The loop over lanes, which compute_at puts first in a row, becomes the innermost; returns the first that sums."""
    loops = sch.get_loops(partial)
    lane = loops.pop(1 if is_in_row else -1)
    summed = loops[len(loops) - reduced :]
    sch.reorder(*summed, lane)
    sch.vectorize(lane)
    return summed[0]


def _vectorise_map(sch: s_tir.Schedule, block: Block) -> None:
    loop = sch.get_loops(block.handle)[-1]
    lanes = _lanes(_extent(sch, loop))
    if lanes:
        sch.vectorize(sch.split(loop, [None, lanes])[1])


def _turns(sch: s_tir.Schedule, handle: Any) -> int:
    return prod(_extent(sch, loop) or 1 for loop in sch.get_loops(handle))


def _extent(sch: s_tir.Schedule, loop: Any) -> int | None:
    """None where known at run time only."""
    extent = sch.get(loop).extent
    return int(extent) if hasattr(extent, "value") else None
