"""NonMaxSuppression in all its forms, beside onnxruntime: the same rows in the same order."""

from typing import Any

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper

from tests.frontend.test_standard_forms import compiled, made
from tests.onnx_models import make_model
from tvm_neuron.errors import ModelError
from tvm_neuron.frontend import from_onnx

RNG = np.random.default_rng(11)


def boxes_of(shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Corners in either order, on a grid so coarse that overlaps meet the limits exactly; some without area."""
    corner, size = RNG.integers(0, 6, (*shape, 2)), RNG.integers(-4, 5, (*shape, 2))
    return np.concatenate([corner, corner + size], -1).astype(np.float32)


def check(
    boxes: NDArray[np.float32], scores: NDArray[np.float32], limits: dict[str, Any], seen: tuple[str, ...] = ()
) -> None:
    """`limits` by n (number), i (overlap), s (score); those in `seen` are known at run time only."""
    given = {name: np.array([value], np.int64 if name == "n" else np.float32) for name, value in limits.items()}
    attributes = {"center_point_box": given.pop("c")[0].astype(int)} if "c" in given else {}
    inputs = {"b": boxes, "p": scores} | {name: given[name] for name in seen}
    constants = {name: value for name, value in given.items() if name not in seen}
    operands = ["b", "p", *(name if name in given else "" for name in "nis")]
    node = helper.make_node("NonMaxSuppression", operands, ["y"], **attributes)
    model = made(node, inputs, constants, opset=19)
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, inputs)
    np.testing.assert_array_equal(compiled(model, inputs)[0], expected)


@pytest.mark.parametrize(
    "limits",
    [
        {},
        {"n": 0},
        {"n": 5},
        {"n": 5, "s": 0.0},
        {"n": 5, "i": 0.5, "s": 0.0},
        {"n": 50, "i": 1 / 3, "s": 0.2},
        {"n": 50, "i": 0.0},
        {"n": 50, "i": 1.0, "s": -0.2},
        {"n": 50, "i": 0.5, "s": 2.0},
    ],
)
def test_limits(limits: dict[str, float]) -> None:
    scores = RNG.uniform(-0.5, 1, (2, 3, 40)).astype(np.float32).round(1)  # many are equal
    check(boxes_of((2, 40)), scores, limits)


@pytest.mark.parametrize("seen", [("n",), ("n", "i"), ("n", "i", "s")])
def test_limits_known_at_run_time(seen: tuple[str, ...]) -> None:
    scores = RNG.uniform(-0.5, 1, (1, 2, 40)).astype(np.float32)
    check(boxes_of((1, 40)), scores, {"n": 7, "i": 0.4, "s": -0.1}, seen)


def test_boxes_by_their_centres() -> None:
    boxes = np.concatenate([RNG.integers(0, 9, (1, 30, 2)), RNG.integers(0, 4, (1, 30, 2)) * 2], -1).astype(np.float32)
    check(boxes, RNG.uniform(0, 1, (1, 2, 30)).astype(np.float32), {"n": 30, "i": 0.3, "c": 1})


def test_more_boxes_kept_than_are_compared_at_once() -> None:
    check(boxes_of((1, 300)), RNG.uniform(0, 1, (1, 1, 300)).astype(np.float32), {"n": 300, "i": 0.6})


@pytest.mark.slow
def test_infinite_scores() -> None:
    scores = RNG.choice(np.float32([np.inf, -np.inf, 0, 1]), (1, 2, 20))
    check(boxes_of((1, 20)), scores, {"n": 20, "i": 0.6})
    check(boxes_of((1, 20)), scores, {"n": 20, "i": 0.6, "s": 0.5})


def test_boxes_of_open_shape_are_refused_with_advice() -> None:
    """As in torchvision's detectors, which move boxes apart by their classes, as many as have scores high enough."""
    nodes = [helper.make_node("NonZero", [name], [f"{name}.places"]) for name in ("wanted", "other")]
    nodes += [helper.make_node("Squeeze", [f"{n}.places", "zero"], [f"{n}.chosen"]) for n in ("wanted", "other")]
    nodes += [helper.make_node("Gather", ["boxes", f"{n}.chosen"], [f"{n}.boxes"], axis=1) for n in ("wanted", "other")]
    nodes += [
        helper.make_node("Add", ["wanted.boxes", "other.boxes"], ["apart"]),
        helper.make_node("Gather", ["scores", "wanted.chosen"], ["their"], axis=2),
        helper.make_node("NonMaxSuppression", ["apart", "their", "most"], ["kept"], name="nms"),
    ]
    shapes = {"wanted": (6,), "other": (6,), "boxes": (1, 6, 4), "scores": (1, 1, 6)}
    model = make_model(nodes, shapes, ["kept"], {"zero": np.int64([0]), "most": np.int64([3])})
    with pytest.raises(ModelError, match=r"'nms' .*boxes or scores is open.* cut the model before it .* on the host"):
        from_onnx(model)


def test_rows_that_several_operators_read() -> None:
    boxes, scores = boxes_of((2, 12)), RNG.uniform(0, 1, (2, 3, 12)).astype(np.float32)
    nodes = [
        helper.make_node("NonMaxSuppression", ["b", "p", "n", "i"], ["rows"]),
        helper.make_node("Gather", ["rows", "first"], ["image"], axis=1),
        helper.make_node("Gather", ["rows", "last"], ["box"], axis=1),
        helper.make_node("Mul", ["image", "twelve"], ["start"]),
        helper.make_node("Add", ["start", "box"], ["place"]),
        helper.make_node("Equal", ["place", "places"], ["is_it"]),
        helper.make_node("Cast", ["is_it"], ["one"], to=TensorProto.FLOAT),
        helper.make_node("ReduceSum", ["one", "first"], ["hits"], keepdims=0),
        helper.make_node("Shape", ["rows"], ["sizes"]),
        helper.make_node("Gather", ["sizes", "first"], ["count"]),
        helper.make_node("Cast", ["count"], ["number"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["hits", "number"], ["counted"]),
        helper.make_node("Mul", ["counted", "scale"], ["y"]),
    ]
    constants = {"n": np.array([12]), "i": np.float32([0.5]), "first": np.array([0]), "last": np.array([2])}
    constants |= {"twelve": np.array([12]), "places": np.arange(24).reshape(1, 24)}
    model = make_model(nodes, {"b": boxes.shape, "p": scores.shape, "scale": (24,)}, ["y"], constants)
    inputs = {"b": boxes, "p": scores, "scale": RNG.uniform(1, 2, 24).astype(np.float32)}
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, inputs)
    np.testing.assert_array_equal(compiled(model, inputs)[0], expected)
