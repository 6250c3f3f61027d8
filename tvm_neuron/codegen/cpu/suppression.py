"""NonMaxSuppression on the CPU: what scores too low is left out before anything is sorted, classes run in parallel."""

from typing import Any

from tvm import relax, te, tirx, topi
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T  # noqa: N812  as everywhere in TVM

_LANES = 16
"""How many kept boxes a box is compared with at once."""


def _suppress(bb: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    """In ONNX's form: rows (batch, class, box) of what is kept, as many as there are, and their number."""
    if call.attrs.output_format != "onnx":
        return call.op.get_attr("FLegalize")(bb, call)
    padded = bb.emit_te(_rows, *call.args, primfunc_name_hint="non_max_suppression")
    rows, count = (bb.emit(relax.TupleGetItem(padded, index)) for index in range(2))
    begin, end, strides = bb.emit_te(_zeros), bb.emit_te(_end, count), bb.emit_te(_ones)
    return relax.Tuple([bb.emit(relax.op.dynamic_strided_slice(rows, begin, end, strides)), count])


def _zeros() -> te.Tensor:
    return te.compute((2,), lambda _: tirx.const(0, "int64"), "zeros")


def _ones() -> te.Tensor:
    return te.compute((2,), lambda _: tirx.const(1, "int64"), "ones")


def _end(count: te.Tensor) -> te.Tensor:
    return te.compute((2,), lambda at: tirx.Select(at == 0, count[0], tirx.const(3, "int64")), "end")


def _rows(
    boxes: te.Tensor, scores: te.Tensor, most: te.Tensor, overlap: te.Tensor, least: te.Tensor
) -> list[te.Tensor]:
    """Room for all rows of which the first count, and their count."""
    batches, classes, count = scores.shape
    lists = batches * classes
    most, overlap, least = map(_as_vector, (most, overlap, least))
    candidates = te.extern(
        [(lists, count), (lists, count), (lists,)],
        [scores, least],
        lambda ins, outs: _candidates(classes, *ins, *outs),
        dtype=["float32", "int32", "int32"],
        name="candidates",
    )
    order = topi.argsort(candidates[0], candidates[2], axis=1, is_ascend=False)
    width = (count + _LANES - 1) // _LANES * _LANES
    kept = te.extern(
        [(lists, count), (lists,), (lists, 5, width)],
        [boxes, candidates[1], candidates[2], order, most, overlap],
        lambda ins, outs: _kept(classes, *ins, *outs),
        dtype=["int32", "int32", "float32"],
        name="kept",
    )
    return te.extern(
        [(lists * count, 3), (1,)],
        kept[:2],
        lambda ins, outs: _collected(classes, *ins, *outs),
        dtype=["int64", "int64"],
        name="rows",
    )


def _as_vector(number: te.Tensor) -> te.Tensor:
    return te.compute((1,), lambda _: number[()])


def _candidates(classes: Any, scores: Any, least: Any, values: Any, places: Any, counts: Any) -> tirx.Stmt:
    """What scores above the limit, in order; all of it if the limit is NaN."""
    lists, size = values.shape
    with IRBuilder() as ib, T.parallel(0, lists) as row:
        found = T.alloc_buffer((1,), "int32", scope="local")
        T.buffer_store(found, 0, [0])
        with T.serial(0, size) as at:
            score = scores[row // classes, row % classes, at]
            T.buffer_store(values, score, [row, found[0]])
            T.buffer_store(places, tirx.Cast("int32", at), [row, found[0]])
            limit = least[0]
            is_taken = tirx.any(score > limit, tirx.isnan(limit))
            T.buffer_store(found, found[0] + tirx.Cast("int32", is_taken), [0])
        T.buffer_store(counts, found[0], [row])
    return ib.get()


def _kept(
    classes: Any, boxes: Any, places: Any, counts: Any, order: Any, most: Any, overlap: Any, chosen: Any, numbers: Any,
    kept: Any,
) -> tirx.Stmt:  # fmt: skip
    """The best box, and then each that overlaps none of those kept by more than the limit."""
    with IRBuilder() as ib, T.parallel(0, counts.shape[0]) as row:
        number, at, hit, first = (T.alloc_buffer((1,), "int32", scope="local") for _ in range(4))
        box = T.alloc_buffer((5,), "float32", scope="local")
        for local in (number, at):
            T.buffer_store(local, 0, [0])
        with T.While(tirx.all(at[0] < counts[row], tirx.Cast("int64", number[0]) < most[0])):
            place = places[row, order[row, at[0]]]
            corner = [boxes[row // classes, place, index] for index in range(4)]
            for index in range(2):
                T.buffer_store(box, tirx.min(corner[index], corner[index + 2]), [index])
                T.buffer_store(box, tirx.max(corner[index], corner[index + 2]), [index + 2])
            T.buffer_store(box, (box[2] - box[0]) * (box[3] - box[1]), [4])
            T.buffer_store(hit, 0, [0])
            T.buffer_store(first, 0, [0])
            with T.While(tirx.all(hit[0] == 0, first[0] < number[0])):
                with T.serial(0, _LANES) as lane:
                    other = first[0] + lane
                    is_hit = tirx.all(other < number[0], _overlap(box, kept, row, other) > overlap[0])
                    T.buffer_store(hit, tirx.bitwise_or(hit[0], tirx.Cast("int32", is_hit)), [0])
                T.buffer_store(first, first[0] + _LANES, [0])
            with T.If(hit[0] == 0), T.Then():
                for index in range(5):
                    T.buffer_store(kept, box[index], [row, index, number[0]])
                T.buffer_store(chosen, place, [row, number[0]])
                T.buffer_store(number, number[0] + 1, [0])
            T.buffer_store(at, at[0] + 1, [0])
        T.buffer_store(numbers, number[0], [row])
    return ib.get()


def _overlap(box: Any, kept: Any, row: Any, other: Any) -> tirx.Expr:
    """Intersection over union; NaN, which is above no limit, of two boxes without area."""
    sides = [
        tirx.max(tirx.min(box[2 + at], kept[row, 2 + at, other]) - tirx.max(box[at], kept[row, at, other]), 0.0)
        for at in range(2)
    ]
    common = sides[0] * sides[1]
    return common / (box[4] + kept[row, 4, other] - common)


def _collected(classes: Any, chosen: Any, numbers: Any, rows: Any, total: Any) -> tirx.Stmt:
    with IRBuilder() as ib, T.serial(0, 1):  # one statement around both
        T.buffer_store(total, tirx.const(0, "int64"), [0])
        with T.serial(0, numbers.shape[0]) as row, T.serial(0, numbers[row]) as at:
            for index, value in enumerate((row // classes, row % classes, chosen[row, at])):
                T.buffer_store(rows, tirx.Cast("int64", value), [total[0], index])
            T.buffer_store(total, total[0] + tirx.const(1, "int64"), [0])
    return ib.get()


SUPPRESSION = {"relax.vision.all_class_non_max_suppression": _suppress}
"""For `relax.transform.LegalizeOps`."""
