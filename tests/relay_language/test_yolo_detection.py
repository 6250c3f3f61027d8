"""Boxes of YOLO networks: where they lie, which are kept, and what is drawn."""

from typing import Any

import numpy as np
import pytest

from tvm_neuron.relay.testing import yolo_detection as yolo

RNG = np.random.default_rng(2)


def _layer(kind: str, columns: int = 8, rows: int = 4) -> dict[str, Any]:
    """Nothing but one object, in column 6 and row 1, of the second anchor."""
    output = np.zeros((3, 7, rows, columns))
    output[1, :, 1, 6] = [0.5, 0.25, np.log(2), np.log(3), 0.9, 0.2, 0.8]
    layer = {"type": kind, "output": output, "biases": [1.0, 1, 2, 2, 30, 20, 5, 5], "classes": 2}
    return layer | ({"mask": [0, 2, 3]} if kind == "Yolo" else {"coords": 4, "background": 0})


@pytest.mark.parametrize(("kind", "wide", "high"), [("Yolo", 2 * 30 / 160, 3 * 20 / 160), ("Region", 0.5, 1.5)])
def test_a_box_is_where_the_image_lies_in_the_networks_input(kind: str, wide: float, high: float) -> None:
    # an image of 80 x 40 fills 160 x 80 of 160 x 160, between borders of 40 rows
    (found,) = [d for d in yolo.fill_network_boxes((160, 160), (80, 40), 0.5, True, [_layer(kind)]) if d["objectness"]]
    assert found["bbox"] == pytest.approx((6.5 / 8, (1.25 / 4 - 0.25) / 0.5, wide, high / 0.5))
    assert found["prob"] == pytest.approx([0, 0.72])  # 0.9 * 0.2 is below the threshold
    in_pixels = yolo.fill_network_boxes((160, 160), (80, 40), 0.5, False, [_layer(kind)])
    (pixels,) = [d for d in in_pixels if d["prob"].any()]
    assert pixels["bbox"] == pytest.approx(np.array(found["bbox"]) * [80, 40, 80, 40])


def test_a_tall_image_has_borders_at_its_sides() -> None:
    (found,) = yolo.fill_network_boxes((160, 160), (40, 80), 0.5, True, [_layer("Yolo")])
    assert found["bbox"].x == pytest.approx((6.5 / 8 - 0.25) / 0.5)
    assert found["bbox"].y == pytest.approx(1.25 / 4)


def test_the_best_of_those_that_overlap_is_kept() -> None:
    boxes = [yolo.Box(*RNG.uniform(0.3, 0.7, 2), *RNG.uniform(0.2, 0.5, 2)) for _ in range(40)]
    chances = RNG.uniform(0, 1, (40, 3))
    dets = [{"bbox": boxes[n], "prob": chances[n].copy(), "objectness": float(n > 4)} for n in range(40)]
    yolo.do_nms_sort(dets, 3, 0.4)
    assert [d["objectness"] for d in dets[-5:]] == [0] * 5  # these are left alone
    left = {d["bbox"]: d["prob"] for d in dets}
    for kind in range(3):
        kept: list[int] = []
        for number in sorted(range(5, 40), key=lambda n: -chances[n, kind]):
            if all(_shared(boxes[number], boxes[other]) <= 0.4 for other in kept):
                kept.append(number)
        assert {n for n in range(5, 40) if left[boxes[n]][kind]} == set(kept)
        assert 1 < len(kept) < 30


def _shared(one: yolo.Box, other: yolo.Box) -> float:
    """By corners."""
    low = [np.array([b.x - b.w / 2, b.y - b.h / 2]) for b in (one, other)]
    high = [np.array([b.x + b.w / 2, b.y + b.h / 2]) for b in (one, other)]
    both = float(np.prod(np.maximum(np.minimum(*high) - np.maximum(*low), 0)))
    return both / (one.w * one.h + other.w * other.h - both)


def test_what_is_shown_and_drawn(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    image = np.zeros((3, 400, 200))
    det = {"bbox": yolo.Box(0.5, 0.5, 0.5, 0.25), "prob": np.array([0.1, 0.75]), "objectness": 1}
    yolo.show_detections(image, [det], 0.5, ["cat", "dog"], 2)
    assert capsys.readouterr().out == "class:['dog 0.75'] left:50 top:150 right:150 bottom:250\n"
    assert yolo.get_detections(image, det, 0.8, ["cat", "dog"], 2) == (False, None)
    monkeypatch.setattr(yolo, "_label", lambda *_: np.full((3, 30, 40), 0.25))
    yolo.draw_detections("none.ttf", image, [det], 0.5, ["cat", "dog"], 2)
    assert image[:, 200, [50, 51, 52, 149, 150]].any(0).tolist() == [True, True, False, True, True]  # two pixels wide
    assert image[:, [150, 151, 249, 250, 252], 120].any(0).tolist() == [True, True, True, True, False]
    assert (image[:, 122:152, 50:90] == 0.25).all()
    assert not image[:, 122:150, 90].any()
