"""inline: what is cheap to compute again is computed where it is read, so that it never goes to memory."""

from collections import Counter

from tvm import s_tir

from tvm_neuron.codegen.cpu.blocks import Block, read_blocks

MOST_TIMES = 4
"""How often each element of something cheap may be computed instead of once."""
MOST_CONDITIONS = 3
"""In an expression with what is inlined into it: TVM writes a loop for either case of each, for all pairs of cases."""


def inline(sch: s_tir.Schedule, blocks: list[Block]) -> list[Block]:
    """Inlines into `sch`; the blocks that are left."""
    readers: dict[object, Counter[Block]] = {}  # by buffer: where it is read, of what is not inlined, and how often
    conditions = {block: block.conditions for block in blocks}
    for block in reversed(blocks):
        places = readers.get(block.result, Counter())
        limit = block.turns * (1 if block.is_expensive else MOST_TIMES)
        is_cheap = sum(reader.turns * count for reader, count in places.items()) <= limit
        more = {reader: conditions[reader] + count * block.conditions for reader, count in places.items()}
        is_short = not block.conditions or max(more.values(), default=0) <= MOST_CONDITIONS
        is_inlined = not block.reduced and block.is_inner and is_cheap and is_short
        for load in block.loads:
            readers.setdefault(load.source, Counter()).update(places if is_inlined else [block])
        if is_inlined:
            conditions |= more
            sch.compute_inline(block.handle)
    return read_blocks(sch)
