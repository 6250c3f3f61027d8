"""inline: what is cheap to compute again is computed where it is read, so that it never goes to memory."""

from tvm import s_tir

from tvm_neuron.codegen.cpu.blocks import Block, read_blocks

MOST_TIMES = 4
"""How often each element of something cheap may be computed instead of once."""


def inline(sch: s_tir.Schedule, blocks: list[Block]) -> list[Block]:
    """Inlines into `sch`; the blocks that are left."""
    turns: dict[object, int] = {}  # by buffer: how often its elements are asked for
    for block in reversed(blocks):
        asked = turns.get(block.result, 0)
        limit = block.turns * (1 if block.is_expensive else MOST_TIMES)
        is_inlined = not block.reduced and block.is_inner and asked <= limit
        for load in block.loads:
            turns[load.source] = turns.get(load.source, 0) + (asked if is_inlined else block.turns)
        if is_inlined:
            sch.compute_inline(block.handle)
    return read_blocks(sch)
