"""Operators that networks leave to the CPU, each as a model of its own with inputs, in the sizes of real networks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, helper, numpy_helper

Arrays = Mapping[str, NDArray]
_node = helper.make_node


@dataclass(frozen=True)
class Leftover:
    """A model whose operators are all measured on the CPU, and inputs for it.

    `computes`: it spends its time on arithmetic in loops, not on moving data or in BLAS.
    """

    what: str
    model: onnx.ModelProto
    inputs: Arrays
    computes: bool = False


def _leftover(
    what: str, nodes: Sequence[NodeProto], inputs: Arrays, constants: Arrays | None = None, results: str = "y",
    computes: bool = False,
) -> Leftover:  # fmt: skip
    values = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in inputs.items()
    ]
    kept = [numpy_helper.from_array(np.asarray(array), name) for name, array in (constants or {}).items()]
    outputs = [onnx.ValueInfoProto(name=name) for name in results.split()]
    graph = helper.make_graph(nodes, "leftover", values, outputs, kept)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True)
    return Leftover(what, inferred, inputs, computes)


def _floats(*shape: int) -> NDArray[np.float32]:
    return np.random.default_rng(0).standard_normal(shape, dtype=np.float32)


def embedding() -> Leftover:
    """BERT's words: 8 sentences of 128 out of 30522 rows."""
    ids = np.random.default_rng(1).integers(0, 30522, (8, 128))
    return _leftover("Gather, 30522x768, 1024 ids", [_node("Gather", ["w", "ids"], ["y"])], {"ids": ids},
                     {"w": _floats(30522, 768)})  # fmt: skip


def non_max_suppression() -> Leftover:
    """The tail of a detector: 8400 boxes of 80 classes, of which few have a high score."""
    rng = np.random.default_rng(2)
    corners = rng.uniform(0, 600, (1, 8400, 2)).astype(np.float32)
    boxes = np.concatenate([corners, corners + rng.uniform(10, 120, (1, 8400, 2)).astype(np.float32)], 2)
    scores = rng.uniform(0, 1, (1, 80, 8400)).astype(np.float32) ** 40
    limits = {"most": np.int64([100]), "overlap": np.float32([0.5]), "least": np.float32([0.25])}
    nodes = [_node("NonMaxSuppression", ["boxes", "scores", *limits], ["y"])]
    return _leftover("NonMaxSuppression, 80x8400", nodes, {"boxes": boxes, "scores": scores}, limits)


def non_max_suppression_one_class() -> Leftover:
    """A region proposal's: 6000 boxes of one class, all of them considered."""
    rng = np.random.default_rng(3)
    corners = rng.uniform(0, 600, (1, 6000, 2)).astype(np.float32)
    boxes = np.concatenate([corners, corners + rng.uniform(10, 120, (1, 6000, 2)).astype(np.float32)], 2)
    limits = {"most": np.int64([1000]), "overlap": np.float32([0.7]), "least": np.float32([0.0])}
    nodes = [_node("NonMaxSuppression", ["boxes", "scores", *limits], ["y"])]
    scores = rng.uniform(0, 1, (1, 1, 6000)).astype(np.float32)
    return _leftover("NonMaxSuppression, 1x6000", nodes, {"boxes": boxes, "scores": scores}, limits)


def top_k() -> Leftover:
    """The best 300 of a detector's scores."""
    return _leftover("TopK, 300 of 8400x8", [_node("TopK", ["x", "k"], ["y", "z"], axis=-1)], {"x": _floats(8, 8400)},
                     {"k": np.int64([300])}, "y z")  # fmt: skip


def top_k_of_many() -> Leftover:
    """The best 1000 of all anchors."""
    return _leftover("TopK, 1000 of 268569", [_node("TopK", ["x", "k"], ["y", "z"])], {"x": _floats(1, 268569)},
                     {"k": np.int64([1000])}, "y z")  # fmt: skip


def boxes_of_yolo() -> Leftover:
    """YOLOv5's decoding of 25200 boxes: centres and sizes by sigmoid, grid and anchors, then corners and scores."""
    rng = np.random.default_rng(4)
    constants = {
        "grid": rng.uniform(0, 80, (1, 25200, 2)).astype(np.float32),
        "anchors": rng.uniform(8, 300, (1, 25200, 2)).astype(np.float32),
        "two": np.float32(2), "half": np.float32(0.5), "stride": np.float32(8), "parts": np.int64([2, 2, 1, 80]),
    }  # fmt: skip
    nodes = [
        _node("Sigmoid", ["x"], ["s"]),
        _node("Split", ["s", "parts"], ["xy", "wh", "object", "classes"], axis=2),
        _node("Mul", ["xy", "two"], ["xy2"]), _node("Sub", ["xy2", "half"], ["offset"]),
        _node("Add", ["offset", "grid"], ["cell"]), _node("Mul", ["cell", "stride"], ["centre"]),
        _node("Mul", ["wh", "two"], ["wh2"]), _node("Mul", ["wh2", "wh2"], ["square"]),
        _node("Mul", ["square", "anchors"], ["size"]), _node("Mul", ["size", "half"], ["extent"]),
        _node("Sub", ["centre", "extent"], ["low"]), _node("Add", ["centre", "extent"], ["high"]),
        _node("Mul", ["classes", "object"], ["scores"]),
        _node("Concat", ["low", "high", "scores"], ["y"], axis=2),
    ]  # fmt: skip
    return _leftover("Boxes of YOLOv5, 25200x85", nodes, {"x": _floats(1, 25200, 85)}, constants, computes=True)


def boxes_of_ssd() -> Leftover:
    """SSD's decoding of 8732 boxes: exp of sizes, variances, priors."""
    rng = np.random.default_rng(5)
    priors = {"centres": rng.uniform(0, 1, (8732, 2)), "sizes": rng.uniform(0.1, 0.9, (8732, 2))}
    constants = {name: array.astype(np.float32)[None] for name, array in priors.items()}
    constants |= {"v1": np.float32(0.1), "v2": np.float32(0.2), "half": np.float32(0.5), "parts": np.int64([2, 2])}
    nodes = [
        _node("Split", ["x", "parts"], ["xy", "wh"], axis=2),
        _node("Mul", ["xy", "v1"], ["a"]), _node("Mul", ["a", "sizes"], ["b"]), _node("Add", ["b", "centres"], ["c"]),
        _node("Mul", ["wh", "v2"], ["d"]), _node("Exp", ["d"], ["e"]), _node("Mul", ["e", "sizes"], ["size"]),
        _node("Mul", ["size", "half"], ["extent"]),
        _node("Sub", ["c", "extent"], ["low"]), _node("Add", ["c", "extent"], ["high"]),
        _node("Concat", ["low", "high"], ["y"], axis=2),
    ]  # fmt: skip
    return _leftover("Boxes of SSD, 8732x4", nodes, {"x": _floats(1, 8732, 4)}, constants)


def resize_bilinear() -> Leftover:
    """A segmentation head's."""
    return _leftover("Resize, linear, 21x65x65 to 513x513", [
        _node("Resize", ["x", "", "", "sizes"], ["y"], mode="linear", coordinate_transformation_mode="align_corners")
    ], {"x": _floats(1, 21, 65, 65)}, {"sizes": np.int64([1, 21, 513, 513])})  # fmt: skip


def resize_nearest() -> Leftover:
    """A feature pyramid's."""
    return _leftover("Resize, nearest, 256x40x40 to 80x80", [
        _node("Resize", ["x", "", "scales"], ["y"], mode="nearest", coordinate_transformation_mode="asymmetric",
              nearest_mode="floor")
    ], {"x": _floats(1, 256, 40, 40)}, {"scales": np.float32([1, 1, 2, 2])})  # fmt: skip


def non_zero() -> Leftover:
    """Where a mask is set."""
    mask = np.random.default_rng(6).uniform(0, 1, (512, 512)) < 0.1
    return _leftover("NonZero, 512x512", [_node("NonZero", ["x"], ["y"])], {"x": mask})


def arg_max() -> Leftover:
    """Of the classes of each pixel."""
    return _leftover("ArgMax, 21 classes of 513x513", [_node("ArgMax", ["x"], ["y"], axis=1, keepdims=0)],
                     {"x": _floats(1, 21, 513, 513)})  # fmt: skip


def softmax() -> Leftover:
    """Of attention."""
    return _leftover("Softmax, 12x128x128", [_node("Softmax", ["x"], ["y"])], {"x": _floats(1, 12, 128, 128)},
                     computes=True)  # fmt: skip


def layer_norm() -> Leftover:
    """BERT's, 8 sentences."""
    return _leftover("LayerNormalization, 1024x768", [_node("LayerNormalization", ["x", "g", "b"], ["y"])],
                     {"x": _floats(8, 128, 768)}, {"g": _floats(768), "b": _floats(768)}, computes=True)  # fmt: skip


def matmul() -> Leftover:
    """Of two tensors that both come at run time."""
    return _leftover("MatMul, 12x128x64 by 64x128", [_node("MatMul", ["a", "b"], ["y"])],
                     {"a": _floats(12, 128, 64), "b": _floats(12, 64, 128)})  # fmt: skip


def dense() -> Leftover:
    """A layer that stays on the CPU."""
    return _leftover("Gemm, 128x768 by 768x768", [_node("Gemm", ["x", "w", "b"], ["y"])], {"x": _floats(128, 768)},
                     {"w": _floats(768, 768), "b": _floats(768)})  # fmt: skip


def integers() -> Leftover:
    """Positions from a mask of 8 sentences, as RoBERTa makes them."""
    ids = np.random.default_rng(7).integers(0, 3, (8, 512))
    constants = {"pad": np.int64(1), "axis": np.int64(1)}
    nodes = [
        _node("Equal", ["ids", "pad"], ["is_pad"]), _node("Not", ["is_pad"], ["is_word"]),
        _node("Cast", ["is_word"], ["mask"], to=TensorProto.INT64),
        _node("CumSum", ["mask", "axis"], ["count"]), _node("Mul", ["count", "mask"], ["position"]),
        _node("Add", ["position", "pad"], ["y"]),
    ]  # fmt: skip
    return _leftover("Integers: positions of 8x512 words", nodes, {"ids": ids}, constants)


def convolution() -> Leftover:
    """A layer in float32 that inf1 has no engine for."""
    nodes = [_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1]), _node("Relu", ["c"], ["y"])]
    return _leftover("Conv 3x3, 64 to 64 channels of 56x56", nodes, {"x": _floats(1, 64, 56, 56)},
                     {"w": _floats(64, 64, 3, 3), "b": _floats(64)})  # fmt: skip


LEFTOVERS: tuple[Callable[[], Leftover], ...] = (
    embedding, non_max_suppression, non_max_suppression_one_class, top_k, top_k_of_many, boxes_of_yolo, boxes_of_ssd,
    resize_bilinear, resize_nearest, non_zero, arg_max, softmax, layer_norm, matmul, dense, convolution, integers,
)  # fmt: skip
