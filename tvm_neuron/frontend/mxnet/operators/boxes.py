"""Boxes of detectors."""

from math import sqrt

import numpy as np

from tvm_neuron.frontend.mxnet.attributes import Attributes
from tvm_neuron.frontend.mxnet.network import Network
from tvm_neuron.frontend.mxnet.operators.converter import Converter
from tvm_neuron.frontend.refused import RefusedError


def _prior(net: Network, at: Attributes, data: str) -> str:
    """Boxes around every position of an image: of all sizes with the first ratio, of the first size with the others."""
    sizes, ratios = at.numbers("sizes", (1,)), at.numbers("ratios", (1,))
    height, width = net.shape(data)[2:]
    steps, offsets = at.numbers("steps", (-1, -1)), at.numbers("offsets", (0.5, 0.5))
    down, right = steps if min(steps) > 0 else (1 / height, 1 / width)
    forms = [(size, ratios[0]) for size in sizes] + [(sizes[0], ratio) for ratio in ratios[1:]]
    halves = np.array([(size * height / width * sqrt(ratio) / 2, size / sqrt(ratio) / 2) for size, ratio in forms])
    rows, columns = (np.arange(height) + offsets[0]) * down, (np.arange(width) + offsets[1]) * right
    centers = np.stack(np.broadcast_arrays(columns, rows[:, None]), -1)[:, :, None]
    boxes = np.concatenate([centers - halves, centers + halves], -1).reshape(1, -1, 4)
    found = np.clip(boxes, 0, 1) if at.flag("clip") else boxes
    return net.constant(found, net.dtype(data))


def _detection(net: Network, at: Attributes, scores: str, places: str, anchors: str) -> str:
    """Rows (class, score, corners) of all anchors: those that score enough, the best first, then rows of -1."""
    threshold, overlap, most = at.number("threshold", 0.01), at.number("nms_threshold", 0.5), at.whole("nms_topk", -1)
    at.skip("background_id")  # it is 0 whatever is said
    dtype = net.dtype(scores)
    batch, _, count = net.shape(scores)
    of_classes = net.sliced(scores, 1, 1, None)
    score = net.add("ReduceMax", of_classes, net.ints([1]), keepdims=0)
    kind = net.cast(net.add("ArgMax", of_classes, axis=1, keepdims=0), dtype)
    is_found = net.add("GreaterOrEqual", score, net.constant(threshold, dtype))
    corners = _corners(net, at, net.reshaped(places, (batch, count, 4)), anchors)
    columns = [net.reshaped(each, (batch, count, 1)) for each in (net.cast(is_found, dtype), kind, score)]
    rows = net.add("Concat", *columns, corners, axis=2)
    in_order = _ordered(net, rows, net.cast(is_found, dtype))
    if 0 < overlap <= 1:
        best_first = _ordered(net, rows, net.add("Where", is_found, score, net.constant(-np.inf, dtype)))
        kept = min(most, count) if most > 0 else count
        taken = net.sliced(best_first, 1, 0, kept)
        classes = 1 if at.flag("force_suppress") else net.shape(of_classes)[1]
        taken = _with_kinds(net, taken, _survivors(net, taken, overlap, classes))
        rest = net.sliced(in_order, 1, kept, count)  # MXNet leaves these where they were
        in_order = net.add("Concat", taken, _with_kinds(net, rest, ""), axis=1) if kept < count else taken
    else:
        at.skip("force_suppress")
    is_row = net.add("Greater", net.sliced(in_order, 2, 0, 1), net.constant(0, dtype))
    return str(net.add("Where", is_row, net.sliced(in_order, 2, 1, None), net.constant(-1, dtype)))


def _corners(net: Network, at: Attributes, places: str, anchors: str) -> str:
    """Of boxes that are `places` [N, A, 4] away from `anchors` [1, A, 4], in units of their sizes and variances."""
    dtype, half = net.dtype(places), net.constant(0.5, net.dtype(places))
    variances = np.array(at.numbers("variances", (0.1, 0.1, 0.2, 0.2)))
    first, last = net.sliced(anchors, 2, 0, 2), net.sliced(anchors, 2, 2, 4)
    size, middle = net.add("Sub", last, first), net.add("Mul", net.add("Add", first, last), half)
    scaled = net.add("Mul", places, net.constant(variances, dtype))
    center = net.add("Add", net.add("Mul", net.sliced(scaled, 2, 0, 2), size), middle)
    reach = net.add("Mul", net.add("Mul", net.add("Exp", net.sliced(scaled, 2, 2, 4)), size), half)
    found = net.add("Concat", net.add("Sub", center, reach), net.add("Add", center, reach), axis=2)
    if not at.flag("clip", True):
        return str(found)
    return str(net.add("Clip", found, net.constant(0, dtype), net.constant(1, dtype)))


def _ordered(net: Network, rows: str, key: str) -> str:
    """Rows [N, A, C] by their keys [N, A], the largest first; of equal ones those that were."""
    batch, count, width = net.shape(rows)
    _, at = net.add("TopK", key, net.ints([count]), axis=1, results=2)
    places = net.expanded(net.reshaped(at, (batch, count, 1)), (batch, count, width))
    return str(net.add("GatherElements", rows, places, axis=1))


def _with_kinds(net: Network, rows: str, is_kept: str) -> str:
    """Rows (found, class, ...) whose class is -1 where they are not kept; without any, all."""
    parts = [net.sliced(rows, 2, 0, 1), net.sliced(rows, 2, 1, 2), net.sliced(rows, 2, 2, None)]
    none = net.constant(np.full(net.shape(parts[1]), -1), net.dtype(rows))
    parts[1] = net.add("Where", is_kept, parts[1], none) if is_kept else none
    return str(net.add("Concat", *parts, axis=2))


def _survivors(net: Network, rows: str, overlap: float, classes: int) -> str:
    """Which of the rows [N, K, 7], the best first, overlap no better one of their class that survives: [N, K, 1]."""
    batch, count, _ = net.shape(rows)
    dtype = net.dtype(rows)
    if dtype != np.float32:
        raise RefusedError(f"it suppresses boxes of {dtype}, not float32")
    rank = net.constant(np.arange(count, 0, -1).reshape(1, 1, count), dtype)
    is_one, kind = (net.transposed(net.sliced(rows, 2, place, place + 1), (0, 2, 1)) for place in (0, 1))
    is_one = net.add("Greater", is_one, net.constant(0, dtype))
    if classes > 1:
        every = net.constant(np.arange(classes).reshape(1, -1, 1), dtype)
        is_one = net.add("And", is_one, net.add("Equal", kind, every))
    lists = net.add("Where", is_one, rank, net.constant(-1, dtype))
    limit = float(np.nextafter(np.float32(overlap), np.float32(-1)))  # what overlaps as much goes, too
    chosen = net.add(
        "NonMaxSuppression", net.sliced(rows, 2, 3, 7), lists, net.ints([count]),
        net.constant(limit, dtype), net.constant(0, dtype),
    )  # fmt: skip
    image, box = (net.add("Gather", chosen, net.ints([column]), axis=1) for column in (0, 2))
    number = net.add("Add", net.add("Mul", image, net.ints([count])), box)
    numbers = net.constant(np.arange(batch * count).reshape(1, -1), np.int64)
    hits = net.add("ReduceSum", net.cast(net.add("Equal", number, numbers), dtype), net.ints([0]), keepdims=0)
    return net.reshaped(net.add("Greater", hits, net.constant(0, dtype)), (batch, count, 1))


CONVERTERS: dict[str, Converter] = {
    "_contrib_MultiBoxPrior": _prior,
    "MultiBoxPrior": _prior,
    "_contrib_MultiBoxDetection": _detection,
    "MultiBoxDetection": _detection,
}
