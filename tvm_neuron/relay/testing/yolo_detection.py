"""yolo_detection: boxes from what a YOLO network gives, the best of those that overlap, and pictures of them.

A detection is a dictionary: `bbox`, `objectness` and `prob`, the chance of each class. Images are [3, rows, columns].
"""

import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.errors import from_extra

_COLOURS = np.array([[1, 0, 1], [0, 0, 1], [0, 1, 1], [0, 1, 0], [1, 1, 0], [1, 0, 0]], float)
_CORNERS = (("left", "left"), ("top", "top"), ("right", "right"), ("bottom", "bot"))
_TEXT_PIXELS, _LABEL_PIXELS = 25, 30


class Box(NamedTuple):
    """The middle of a box, its width and its height."""

    x: float
    y: float
    w: float
    h: float


def fill_network_boxes(
    net_shape: Sequence[int], im_shape: Sequence[int], thresh: float, relative: bool, tvm_out: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """The detections of all layers of type `Yolo` or `Region` in `tvm_out`; shapes are (width, height).

    `relative` boxes are parts of the image, others are in pixels.
    """
    found = []
    for layer in tvm_out:
        if layer["type"] == "Yolo":
            found += list(_yolo(layer, net_shape, thresh))
        elif layer["type"] == "Region":
            found += list(_region(layer, thresh))
    for each in found:
        each["bbox"] = _in_image(each["bbox"], im_shape, net_shape, relative)
    return found


def _yolo(layer: dict[str, Any], net_shape: Sequence[int], thresh: float) -> Iterator[dict[str, Any]]:
    data = layer["output"]  # [anchors, 5 + classes, rows, columns]
    for anchor, row, column in np.argwhere(data[:, 4] > thresh):
        values = data[anchor, :, row, column]
        box = _box(values, layer["biases"], layer["mask"][anchor], (row, column), data, net_shape)
        yield _detection(box, values[4], values[4] * values[5:], thresh, layer["classes"])


def _region(layer: dict[str, Any], thresh: float) -> Iterator[dict[str, Any]]:
    data, coords, classes = layer["output"], layer["coords"], layer["classes"]
    for row, column, anchor in np.ndindex(data.shape[2], data.shape[3], data.shape[0]):
        values = data[anchor, :, row, column]
        scale = 1.0 if layer["background"] else values[coords]
        box = _box(values, layer["biases"], anchor, (row, column), data, (data.shape[3], data.shape[2]))
        chances = scale * values[coords + 1 : coords + 1 + classes]
        is_object = scale > thresh
        yield _detection(box, scale if is_object else 0, chances if is_object else chances * 0, thresh, classes)


def _detection(box: Box, objectness: float, chances: NDArray[Any], thresh: float, classes: int) -> dict[str, Any]:
    kept = np.where(chances < thresh, 0, chances)
    return {"bbox": box, "classes": classes, "prob": kept, "objectness": objectness}


def _box(
    values: NDArray[Any], biases: Any, anchor: int, at: tuple[int, int], data: NDArray[Any], sizes: Sequence[int]
) -> Box:
    """A box as parts of what the network sees; anchors are in pixels of `sizes`."""
    (row, column), (rows, columns) = at, data.shape[2:]
    wide, high = np.exp(values[2:4]) * biases[2 * anchor : 2 * anchor + 2] / np.array(sizes[:2])
    return Box((column + values[0]) / columns, (row + values[1]) / rows, wide, high)


def _in_image(box: Box, im_shape: Sequence[int], net_shape: Sequence[int], relative: bool) -> Box:
    """The box in the image, which the network sees in the middle of its input, with borders at two sides."""
    (wide, high), (net_wide, net_high) = im_shape[:2], net_shape[:2]
    is_flat = net_wide / wide < net_high / high
    new_wide, new_high = (net_wide, high * net_wide // wide) if is_flat else (wide * net_high // high, net_high)
    x = (box.x - (net_wide - new_wide) / 2 / net_wide) / (new_wide / net_wide)
    y = (box.y - (net_high - new_high) / 2 / net_high) / (new_high / net_high)
    across, down = (1, 1) if relative else (wide, high)
    return Box(x * across, y * down, box.w * net_wide / new_wide * across, box.h * net_high / new_high * down)


def do_nms_sort(dets: list[dict[str, Any]], classes: int, thresh: float) -> None:
    """Sets the chances of a class to 0 where a likelier box of it overlaps by more than `thresh`."""
    objects = [each for each in dets if each["objectness"] != 0]
    dets[:] = objects + [each for each in dets if each["objectness"] == 0]
    for kind in range(classes):
        objects.sort(key=lambda each: -each["prob"][kind])
        for place, best in enumerate(objects):
            for other in objects[place + 1 :] if best["prob"][kind] else ():
                if _overlap(best["bbox"], other["bbox"]) > thresh:
                    other["prob"][kind] = 0
    dets[: len(objects)] = objects


def _overlap(one: Box, other: Box) -> float:
    """What two boxes share, as a part of what they cover together."""
    sides = [
        min(a + b / 2, c + d / 2) - max(a - b / 2, c - d / 2)
        for a, b, c, d in ((one.x, one.w, other.x, other.w), (one.y, one.h, other.y, other.h))
    ]
    shared = 0.0 if min(sides) < 0 else sides[0] * sides[1]
    return shared / (one.w * one.h + other.w * other.h - shared)


def get_detections(
    im: NDArray[Any], det: dict[str, Any], thresh: float, names: Sequence[str], classes: int
) -> tuple[bool, dict[str, Any] | None]:
    """Whether a class is likelier than `thresh`, and what to draw: labels, corners in pixels, colour."""
    likely = [kind for kind in range(classes) if det["prob"][kind] > thresh]
    if not likely:
        return False, None
    _, rows, columns = im.shape
    box = det["bbox"]
    place = likely[0] * 123457 % classes / classes * (len(_COLOURS) - 1)
    low, part = int(place), place % 1
    return True, {
        "category": likely[0],
        "labelstr": [f"{names[kind]} {round(float(det['prob'][kind]), 4)}" for kind in likely],
        "left": max(int((box.x - box.w / 2) * columns), 0),
        "right": min(int((box.x + box.w / 2) * columns), columns - 1),
        "top": max(int((box.y - box.h / 2) * rows), 0),
        "bot": min(int((box.y + box.h / 2) * rows), rows - 1),
        "width": int(rows * 0.006),
        "rgb": ((1 - part) * _COLOURS[low] + part * _COLOURS[min(low + 1, len(_COLOURS) - 1)])[::-1].tolist(),
    }


def show_detections(
    im: NDArray[Any], dets: list[dict[str, Any]], thresh: float, names: Sequence[str], classes: int
) -> None:
    """Prints the labels and the corners of all boxes."""
    for det in dets:
        _, found = get_detections(im, det, thresh, names, classes)
        if found:
            corners = " ".join(f"{name}:{found[key]}" for name, key in _CORNERS)
            sys.stdout.write(f"class:{found['labelstr']} {corners}\n")


def draw_detections(
    font_path: str, im: NDArray[Any], dets: list[dict[str, Any]], thresh: float, names: Sequence[str], classes: int
) -> None:
    """Draws the boxes and their labels into the image, whose numbers are from 0 to 1. Needs Pillow."""
    for det in dets:
        _, found = get_detections(im, det, thresh, names, classes)
        if found:
            colour = np.array(found["rgb"])[:, None]
            for inset in range(found["width"]):
                left, right, top, bottom = (
                    found[side] + inset * sign for side, sign in (("left", 1), ("right", -1), ("top", 1), ("bot", -1))
                )
                im[:, [top, bottom], left : right + 1] = colour[:, :, None]
                im[:, top : bottom + 1, [left, right]] = colour[:, :, None]
            _draw_label(im, found, _label(font_path, "".join(found["labelstr"]), found["rgb"]))


def _draw_label(im: NDArray[Any], found: dict[str, Any], label: NDArray[Any]) -> None:
    """Above the box where there is room, else inside it."""
    top = found["top"] + found["width"]
    top -= label.shape[1] if top >= label.shape[1] else 0
    place = im[:, top : top + label.shape[1], found["left"] : found["left"] + label.shape[2]]
    place[...] = label[:, : place.shape[1], : place.shape[2]]


def _label(font_path: str, text: str, rgb: Sequence[float]) -> NDArray[Any]:
    with from_extra("html", "draw_detections"):
        from PIL import Image, ImageDraw, ImageFont
    font = ImageFont.truetype(font_path, _TEXT_PIXELS)
    width = int(ImageDraw.Draw(Image.new("RGB", (1, 1))).textlength(text, font=font))
    red, green, blue = (int(each * 255) for each in rgb)
    picture = Image.new("RGB", (width, _LABEL_PIXELS), color=(red, green, blue))
    ImageDraw.Draw(picture).text((0, 0), text, fill="black", font=font)
    return np.asarray(picture).transpose(2, 0, 1) / 255
