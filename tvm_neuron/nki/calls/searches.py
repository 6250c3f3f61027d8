"""Calls that look along the free axes or partitions of a tile: the largest eight, where they are, gathers, shuffles."""

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

from tvm_neuron.isa import (
    FindIndex8,
    LocalGather,
    MatchReplace8,
    Max8,
    RangeSelect,
    Select,
    SelectReduce,
    StreamShuffle,
)
from tvm_neuron.nki.calls.operands import elementwise, number, on_chip, scalar
from tvm_neuron.nki.emission import Result
from tvm_neuron.nki.index import Mask
from tvm_neuron.nki.operators import ALU, TESTS, named
from tvm_neuron.nki.source import wrong
from tvm_neuron.nki.trace import current
from tvm_neuron.nki.view import View

_EIGHT = 8
_KEPT = 255  # in a mask of shuffles: the partition stays as it is
_LOWEST = -3.4028235e38  # of float32


def _row(
    shape: tuple[int, ...], dtype: str, build: Any, *sources: View, also: Sequence[View] = (), is_cut: bool = False
) -> Result:
    def write(target: View, mask: Mask | None) -> None:
        current().row(build, [target.fitted(shape), *also], *sources, mask=mask, is_cut=is_cut)

    return Result(shape, dtype, "sbuf", write)


def max8(src: Any) -> Result:
    """[P, 8]: the largest eight, in descending order."""
    on_chip("max8", src)
    return _row((src.shape[0], _EIGHT), src.tensor.dtype, Max8, src, is_cut=True)


def find_index8(data: Any, vals: Any) -> Result:
    """[P, 8]: where each of vals [P, 8] is first in data; all ones where it is not."""
    on_chip("nc_find_index8", data, vals)
    return _row((data.shape[0], _EIGHT), "int32", FindIndex8, data, vals, is_cut=True)


def match_replace8(data: Any, vals: Any, imm: Any, dst_idx: Any = None) -> Result:
    """data with the first of each of vals [P, 8] replaced by a number; `dst_idx`, if given, gets their places."""
    on_chip("nc_match_replace8", data, vals)
    trace = current()
    places = trace.tensor((data.shape[0], _EIGHT), "int32", "sbuf") if dst_idx is None else dst_idx
    build = partial(MatchReplace8, replacement=number("imm of nc_match_replace8", imm))
    return _row(data.shape, data.tensor.dtype, build, data, vals, also=[places])


def local_gather(src_buffer: Any, index: Any, num_elem_per_idx: int = 1, num_valid_indices: Any = None) -> Result:
    """Elements of each partition, at indices that 16 partitions have in common."""
    on_chip("local_gather", src_buffer, index)
    listed = min(16, index.shape[0]) * prod(index.shape[1:])
    count = listed if num_valid_indices is None else int(num_valid_indices)
    build = partial(LocalGather, elems=int(num_elem_per_idx))
    shape = (src_buffer.shape[0], count * int(num_elem_per_idx))
    return _row(shape, src_buffer.tensor.dtype, build, src_buffer, index)


def stream_shuffle(src: Any, shuffle_mask: Sequence[int]) -> Result:
    """Partition i of each 32 has what partition shuffle_mask[i] of them had; `src` may have fewer than the result."""
    on_chip("nc_stream_shuffle", src)
    order = tuple(int(row) for row in shuffle_mask)
    if _KEPT in order:
        raise wrong(f"nc_stream_shuffle with {_KEPT} in its mask; the model writes every partition: give its number")

    def write(target: View, mask: Mask | None) -> None:
        result = target.fitted((target.shape[0], *src.shape[1:]))
        current().emit(StreamShuffle, {"result": result}, mask, source=src, order=order)

    return Result(src.shape, src.tensor.dtype, "sbuf", write)


def copy_predicated(src: Any, dst: View, predicate: Any, reverse_pred: bool = False) -> Result:
    """src, a tile or a number, where predicate is not 0 (with `reverse_pred`: is 0), else what dst holds."""
    on_chip("tensor_copy_predicated", dst, predicate)
    new = src if isinstance(src, View) else current().filled((dst.shape[0], 1), dst.tensor.dtype, float(src))
    chosen = (dst, new) if reverse_pred else (new, dst)
    views = {"predicate": predicate, "on_true": chosen[0], "on_false": chosen[1]}
    return elementwise(Select, views, dst.tensor.dtype)


def select_reduce(
    dst: View,
    predicate: Any,
    on_true: Any,
    on_false: Any,
    reduce_res: Any = None,
    reduce_cmd: Any = "reset_reduce",
    reduce_op: Any = "max",
    reverse_pred: bool = False,
) -> Result:
    """on_true where predicate is not 0, else the number on_false; the largest goes to `reduce_res` if that is given."""
    on_chip("select_reduce", predicate, on_true)
    if reverse_pred:
        raise wrong("select_reduce with reverse_pred; the model chooses where the predicate is not 0: negate it")
    _need_max("select_reduce", reduce_op, reduce_cmd)
    total = reduce_res if reduce_res is not None else current().tensor((dst.shape[0], 1), "float32", "sbuf")
    views = {"predicate": predicate, "on_true": on_true}
    return elementwise(SelectReduce, views, dst.tensor.dtype, total=total, on_false=scalar(on_false))


def range_select(
    on_true_tile: Any,
    comp_op0: Any,
    comp_op1: Any,
    bound0: Any,
    bound1: Any,
    reduce_cmd: Any = "reset_reduce",
    reduce_res: Any = None,
    reduce_op: Any = "max",
    range_start: Any = 0.0,
    on_false_value: float = _LOWEST,
) -> Result:
    """on_true_tile where range_start + i passes both tests, else a number; the largest goes to `reduce_res`."""
    on_chip("range_select", on_true_tile)
    _need_max("range_select", reduce_op, reduce_cmd)
    total = reduce_res if reduce_res is not None else current().tensor((on_true_tile.shape[0], 1), "float32", "sbuf")
    fixed = {"bound0": scalar(bound0), "bound1": scalar(bound1), "start": scalar(range_start)}
    tests = {"test0": named(comp_op0, TESTS, "range_select"), "test1": named(comp_op1, TESTS, "range_select")}
    return elementwise(
        RangeSelect, {"source": on_true_tile}, on_true_tile.tensor.dtype,
        total=total, other=float(on_false_value), **fixed, **tests,
    )  # fmt: skip


def _need_max(what: str, reduce_op: Any, reduce_cmd: Any) -> None:
    if named(reduce_op, ALU, what) != "max" or reduce_cmd not in ("reset_reduce", None):
        raise wrong(f"{what} with reduce_cmd={reduce_cmd}, reduce_op={reduce_op}; the model has reset_reduce and max")
