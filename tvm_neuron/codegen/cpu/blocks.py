"""Block: what the schedules of CPU kernels need to know of one block of TIR."""

from dataclasses import dataclass
from math import prod
from typing import Any

import tvm_ffi
from tvm import ir, s_tir, tirx

_EXPENSIVE = frozenset(
    f"tirx.{name}"
    for name in ("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh", "erf", "exp", "exp10",
                 "exp2", "fmod", "log", "log10", "log1p", "log2", "pow", "rsqrt", "sigmoid", "sin", "sinh", "sqrt",
                 "tan", "tanh")
)  # fmt: skip
_CONDITION = "prim.if_then_else"
_UNKNOWN_EXTENT = 1024


@dataclass(frozen=True, eq=False)  # which of the blocks it is, for two may look alike
class Block:
    """A block that stores one element of one buffer in each turn of its loops, which are those of its axes.

    `extents` are the axes', None where known at run time only; over the last `reduced` of them it sums or the like.
    `is_inner`: only other blocks read its result. `loads` are what its expression reads, each place in it once, and
    `conditions` how often it chooses between two expressions.
    `is_expensive`: it computes more than a few simple operations. `is_rowwise`: the last axis is that along which all
    it reads lies contiguously, or stays.
    """

    handle: Any
    extents: tuple[int | None, ...]
    reduced: int
    result: Any
    is_inner: bool
    loads: tuple[ir.TensorLoad, ...]
    conditions: int
    is_expensive: bool
    is_rowwise: bool

    @property
    def turns(self) -> int:
        """How often it stores; an unknown extent counts as 1024."""
        return prod(_UNKNOWN_EXTENT if extent is None else extent for extent in self.extents)

    @property
    def spatial(self) -> tuple[int | None, ...]:
        """The extents of its result."""
        return self.extents[: len(self.extents) - self.reduced]


def read_blocks(sch: s_tir.Schedule) -> list[Block]:
    """The blocks of a kernel in order; none if one is something else than a store in a nest of loops of its own."""
    root = sch.get_sblock("root")
    inner = set(sch.get(root).alloc_buffers)
    blocks = [_read(sch, handle, inner) for handle in sch.get_child_blocks(root)]
    known = [block for block in blocks if block is not None]
    return known if len(known) == len(blocks) else []


def _read(sch: s_tir.Schedule, handle: Any, inner: set[Any]) -> Block | None:
    block = sch.get(handle)
    store, axes = block.body, list(block.iter_vars)
    reduced = sum(axis.iter_type == tirx.IterVar.CommReduce for axis in axes)
    kinds = [tirx.IterVar.DataPar] * (len(axes) - reduced) + [tirx.IterVar.CommReduce] * reduced
    if not isinstance(store, tirx.BufferStore) or [axis.iter_type for axis in axes] != kinds:
        return None
    if len(sch.get_loops(handle)) != len(axes):
        return None
    found: list[Any] = []
    tvm_ffi.structural_walk(store.value, ((ir.TensorLoad, ir.Call, tirx.Div), found.append))
    loads = tuple(node for node in found if isinstance(node, ir.TensorLoad) and not node.source.same_as(store.buffer))
    return Block(
        handle=handle,
        extents=tuple(int(axis.dom.extent) if isinstance(axis.dom.extent, tirx.IntImm) else None for axis in axes),
        reduced=reduced,
        result=store.buffer,
        is_inner=store.buffer in inner,
        loads=loads,
        conditions=sum(isinstance(node, ir.Call) and getattr(node.op, "name", "") == _CONDITION for node in found),
        is_expensive=any(map(_is_expensive, found)),
        is_rowwise=bool(axes) and all(_is_along(load, axes[-1].var) for load in loads),
    )


def _is_expensive(node: Any) -> bool:
    return isinstance(node, tirx.Div) or (isinstance(node, ir.Call) and getattr(node.op, "name", "") in _EXPENSIVE)


def _is_along(load: ir.TensorLoad, axis: Any) -> bool:
    """Whether neighbours along `axis` are neighbours in memory, or the same element."""
    used = [_uses(index, axis) for index in load.indices]
    return not any(used[:-1]) and (not used or not used[-1] or load.indices[-1].same_as(axis))


def _uses(index: Any, axis: Any) -> bool:
    found: list[Any] = []
    tvm_ffi.structural_walk(index, (ir.Var, found.append))
    return any(var.same_as(axis) for var in found)
