"""Schedules of the CPU's kernels: cheap blocks inlined, the rest by rows or by loops, in parallel if it pays."""

from contextlib import suppress

from tvm import s_tir, tirx

from tvm_neuron.codegen.cpu import starts
from tvm_neuron.codegen.cpu.blocks import Block, read_blocks
from tvm_neuron.codegen.cpu.functions import expand
from tvm_neuron.codegen.cpu.inline import inline
from tvm_neuron.codegen.cpu.kernel_pass import kernel_pass
from tvm_neuron.codegen.cpu.rows import schedule_rows

FEW_TURNS = 1 << 19
"""A kernel of fewer turns takes about 0.1 ms, and no thread: on a busy machine another one may begin only later."""
EXPENSIVE = 8
"""How many turns one of an expensive block counts for."""
COMPUTES = "neuron.computes"
"""The attribute of a kernel that is worth threads and does more than move data."""
_PIECES = 16
"""With fewer pieces than these, the innermost loop is cut as well."""
_LONG = range(4096, 63, -1)
"""How long its pieces may be."""


def scheduled(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """The kernel with the first schedule that TVM can prove right; the same numbers but for the order of sums."""
    if not isinstance(func.body, s_tir.SBlockRealize) or func.body.block.name_hint != "root":
        return func
    started = starts.finite(func)
    for schedule in (_by_rows, _by_loops):
        sch = s_tir.Schedule(started)
        with suppress(s_tir.ScheduleError):
            blocks = inline(sch, read_blocks(sch))
            if schedule(sch, blocks):
                found = sch.mod["main"]
                if _is_worth_threads(blocks) and any(block.reduced or block.is_expensive for block in blocks):
                    found = found.with_attr(COMPUTES, True)
                return found if started.same_as(func) else starts.infinite(found)
    return func


def _by_rows(sch: s_tir.Schedule, blocks: list[Block]) -> bool:
    return bool(blocks) and schedule_rows(sch, blocks, _is_worth_threads(blocks))


def _by_loops(sch: s_tir.Schedule, blocks: list[Block]) -> bool:
    for block in blocks:
        _schedule_loops(sch, block)
    return True


def _is_worth_threads(blocks: list[Block]) -> bool:
    return sum(block.turns * (EXPENSIVE if block.is_expensive else 1) for block in blocks) >= FEW_TURNS


def _schedule_loops(sch: s_tir.Schedule, block: Block) -> None:
    """One block alone: the outer loops in parallel, and the innermost one, also of a sum, over the result's rows."""
    if not block.spatial:
        return
    loops = sch.get_loops(block.handle)
    outer, summed = loops[: len(block.spatial)], loops[len(block.spatial) :]
    if not block.is_rowwise or not summed:
        inner = outer.pop()
        extent = block.extents[len(block.spatial) - 1]
        length = next((size for size in _LONG if extent % size == 0), None) if extent else None
        if block.turns // (extent or 1) < _PIECES and length:
            first, inner = sch.split(inner, [None, length])
            outer.append(first)
        if summed:
            sch.reorder(*outer, *summed, inner)
        outer = outer or [inner]
    if _is_worth_threads([block]):
        sch.parallel(sch.fuse(*outer))
    if summed:
        sch.decompose_reduction(block.handle, summed[0])


schedule_kernels = kernel_pass("ScheduleKernels", lambda func: expand(scheduled(func)))
"""Every kernel that is loops around stores gets a schedule; others stay as they are."""
