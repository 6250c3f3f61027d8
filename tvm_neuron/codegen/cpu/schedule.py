"""Schedules of the CPU's kernels: cheap blocks inlined, the rest by rows or by loops, in parallel if it pays."""

from contextlib import suppress

import tvm
from tvm import s_tir, tirx

from tvm_neuron.codegen.cpu.blocks import Block, read_blocks
from tvm_neuron.codegen.cpu.functions import expand
from tvm_neuron.codegen.cpu.inline import inline
from tvm_neuron.codegen.cpu.rows import schedule_rows

FEW_TURNS = 1 << 14
"""A kernel of fewer turns is done before another thread has begun."""
_PIECES = 16
"""With fewer pieces than these, the innermost loop is cut as well."""
_LONG = range(4096, 63, -1)
"""How long its pieces may be."""


@tvm.transform.module_pass(opt_level=0, name="ScheduleKernels")
def schedule_kernels(mod: tvm.IRModule, _context: tvm.transform.PassContext) -> tvm.IRModule:
    """Every kernel that is loops around stores gets a schedule; others stay as they are."""
    mod = mod.clone()
    for var, func in mod.functions_items():
        if isinstance(func, tirx.PrimFunc):
            mod.update_func(var, expand(scheduled(func)))
    return mod


def scheduled(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """The kernel with the first schedule that TVM can prove right; the same numbers but for the order of sums."""
    if not isinstance(func.body, s_tir.SBlockRealize) or func.body.block.name_hint != "root":
        return func
    for schedule in (_by_rows, _by_loops):
        sch = s_tir.Schedule(func)
        with suppress(s_tir.ScheduleError):
            if schedule(sch, inline(sch, read_blocks(sch))):
                return sch.mod["main"]
    return func


def _by_rows(sch: s_tir.Schedule, blocks: list[Block]) -> bool:
    return bool(blocks) and schedule_rows(sch, blocks, sum(block.turns for block in blocks) >= FEW_TURNS)


def _by_loops(sch: s_tir.Schedule, blocks: list[Block]) -> bool:
    for block in blocks:
        _schedule_loops(sch, block)
    return True


def _schedule_loops(sch: s_tir.Schedule, block: Block) -> None:
    """One block alone: the outer loops in parallel, and the innermost one, also of a sum, over the result's rows."""
    if not block.spatial:
        return
    loops = sch.get_loops(block.handle)
    *outer, inner = loops[: len(block.spatial)]
    summed = loops[len(block.spatial) :]
    extent = block.extents[len(block.spatial) - 1]
    length = next((size for size in _LONG if extent % size == 0), None) if extent else None
    if block.turns // (extent or 1) < _PIECES and length:
        first, inner = sch.split(inner, [None, length])
        outer.append(first)
    if summed:
        sch.reorder(*outer, *summed, inner)
    if block.turns >= FEW_TURNS:
        sch.parallel(sch.fuse(*outer) if outer else inner)
    if summed:
        sch.decompose_reduction(block.handle, summed[0])
