"""Boxes as detectors of Relay's days used them, against loops in NumPy."""

import numpy as np
import pytest
import tvm
from numpy.typing import NDArray

from tests.relay_language.test_windows import run, var
from tvm_neuron import relay
from tvm_neuron.relay.testing import run_infer_type

RNG = np.random.default_rng(7)


def boxes(batch: int, count: int, classes: int) -> NDArray:
    """[class, score, left, top, right, bottom]; no two scores are the same."""
    corner, size = RNG.uniform(0, 10, (batch, count, 2)), RNG.uniform(2, 6, (batch, count, 2))
    scores = np.stack([RNG.permutation(count) for _ in range(batch)])[..., None] / count
    names = RNG.integers(-1, classes, (batch, count, 1))
    return np.concatenate([names, scores, corner, corner + size], 2).astype("float32")


def valid(data: NDArray, least: float) -> tuple[list[int], NDArray, NDArray]:
    counts, rows, places = [], np.full_like(data, -1), np.full(data.shape[:2], -1)
    for image, found in enumerate(data):
        kept = [place for place, row in enumerate(found) if row[1] > least and row[0] >= 0]
        rows[image, : len(kept)], places[image, : len(kept)] = found[kept], kept
        counts.append(len(kept))
    return counts, rows, places


def overlap(one: NDArray, other: NDArray) -> float:
    width, height = np.minimum(one[4:6], other[4:6]) - np.maximum(one[2:4], other[2:4])
    shared = max(width, 0) * max(height, 0)
    return float(shared / (np.prod(one[4:6] - one[2:4]) + np.prod(other[4:6] - other[2:4]) - shared))


def suppressed(rows: NDArray, limit: int, most: float, all_classes: bool) -> list[int]:
    kept: list[int] = []
    for place in np.argsort(-rows[:, 1]):
        rivals = [each for each in kept if all_classes or rows[each, 0] == rows[place, 0]]
        is_free = all(overlap(rows[each], rows[place]) < most for each in rivals)
        if len(kept) != limit and rows[place, 1] > 0 and is_free:
            kept.append(int(place))
    return kept


@pytest.mark.parametrize(("limit", "all_classes"), [(-1, False), (3, False), (-1, True)])
def test_boxes_are_counted_and_suppressed(limit: int, all_classes: bool) -> None:
    data = boxes(2, 30, 3)
    counts, rows, places = valid(data, 0.2)
    made = relay.vision.get_valid_counts(var("x", data), 0.2, 0, 1)
    found = run(made.astuple(), data)
    for actual, wanted in zip(found, (counts, rows, places), strict=True):
        np.testing.assert_array_equal(actual, wanted)
    most = relay.var("most", shape=(), dtype="float32")  # known only when it is called
    chosen = {"max_output_size": limit, "iou_threshold": most, "force_suppress": all_classes}
    kept = relay.vision.non_max_suppression(made[1], made[0], made[2], **chosen)
    assert [str(ty) for ty in run_infer_type(kept.astuple()).checked_type.fields] == [
        "Tensor[(2, 30), int32]", "Tensor[(2, 1), int32]",
    ]  # fmt: skip
    named, numbers = run(kept.astuple(), data, np.float32(0.3))
    rest = relay.vision.non_max_suppression(made[1], made[0], made[2], return_indices=False, **chosen)
    left = run(rest, data, np.float32(0.3))
    for image in range(2):
        best = suppressed(rows[image, : counts[image]], limit, 0.3, all_classes)
        assert 0 < len(best) < counts[image]
        assert numbers[image, 0] == len(best)
        np.testing.assert_array_equal(named[image, : len(best)], places[image, best])
        np.testing.assert_array_equal(left[image][left[image, :, 0] >= 0], rows[image, best])


@pytest.mark.parametrize("keeps_background", [False, True])
def test_boxes_are_decoded_from_anchors(keeps_background: bool) -> None:
    scores = RNG.dirichlet(np.ones(4), (2, 9)).transpose(0, 2, 1).astype("float32")
    moves, variances = RNG.standard_normal((2, 36)).astype("float32"), (0.1, 0.2, 0.3, 0.4)
    corner = RNG.uniform(-0.1, 0.5, (1, 9, 2))
    anchors = np.concatenate([corner, corner + RNG.uniform(0.1, 0.6, (1, 9, 2))], 2).astype("float32")
    made = relay.vision.multibox_transform_loc(
        var("s", scores), var("m", moves), var("a", anchors), True, 0.4, variances, keeps_background
    )
    rows, counts = run(made.astuple(), scores, moves, anchors)
    for image in range(2):
        wanted = []
        for place, (left, top, right, bottom) in enumerate(anchors[0].astype("float64")):
            first = 0 if keeps_background else 1
            best = int(np.argmax(scores[image, first:, place]))
            if scores[image, first + best, place] < 0.4:
                continue
            x, y, w, h = moves[image, 4 * place : 4 * place + 4] * np.array(variances)
            middle = np.array([x * (right - left) + (left + right) / 2, y * (bottom - top) + (top + bottom) / 2])
            half = np.array([np.exp(w) * (right - left), np.exp(h) * (bottom - top)]) / 2
            box = np.clip(np.concatenate([middle - half, middle + half]), 0, 1)
            wanted.append([best, scores[image, first + best, place], *box])
        assert counts[image] == len(wanted) > 0
        np.testing.assert_allclose(rows[image, : len(wanted)], wanted, rtol=1e-5, atol=1e-6)
    n = tvm.te.var("n")
    open_scores = relay.var("s", relay.TensorType((n, 4, 9)))
    open_moves = relay.var("m", relay.TensorType((n, 36)))
    ty = run_infer_type(relay.vision.multibox_transform_loc(open_scores, open_moves, var("a", anchors)).astuple())
    assert ty.checked_type == relay.TupleType([relay.TensorType((n, 9, 6)), relay.TensorType((n,), "int")])
