"""Nodes that reduce, along axes or in windows of images."""

import numpy as np
import onnx
from onnx import helper

from tests.codegen.constants.drawing import OF_SMALL, Drawing

_REDUCE = ("Sum", "Mean", "Max", "Min", "L1", "SumSquare", "Prod", "L2", "LogSum", "LogSumExp")
_OF_FLOATS = 4  # so many of them, the last, only of floats


def reduce(r: Drawing) -> onnx.NodeProto | None:
    name = r.pick(rank=1)
    if name is None:
        return None
    is_whole = r.value(name).dtype.kind in "iu"
    if is_whole and (not r.is_small(name) or not r.value(name).size):
        return None  # overflows, which C++ leaves open
    op = f"Reduce{r.choice(_REDUCE[: -_OF_FLOATS if is_whole else None])}"
    rank, keep = r.value(name).ndim, int(r.chance(0.5))
    if op in ("ReduceMax", "ReduceMin", "ReduceLogSumExp") and r.has_nan(name):
        return None
    if op == "ReduceLogSum" and np.any(r.value(name) < 0):
        return None  # what cancels in the sum is not small beside its logarithm
    axes = r.rng.choice(rank, r.rng.integers(1, rank + 1), replace=False).tolist()
    if r.opset >= 18 or (op == "ReduceSum" and r.opset >= 13):
        return helper.make_node(op, [name, r.ints(*axes)], [""], keepdims=keep)
    return helper.make_node(op, [name], [""], axes=axes, keepdims=keep)


def along(r: Drawing) -> onnx.NodeProto | None:
    name = r.pick(rank=1)
    if name is None:
        return None
    op, axis = r.choice(["Softmax", "LogSoftmax", "Hardmax", "ArgMax", "ArgMin", "CumSum", "TopK"]), r.axis(name)
    value = r.value(name)
    if op in ("ArgMax", "ArgMin", "Hardmax") and r.has_nan(name):
        return None
    if op in ("ArgMax", "ArgMin"):
        last = {"select_last_index": int(r.chance(0.3))} if r.opset >= 12 else {}
        return helper.make_node(op, [name], [""], axis=axis, keepdims=int(r.chance(0.5)), **last)
    if op in OF_SMALL and not r.is_small(name):
        return None
    if op == "CumSum":
        axis_of = r.new(np.array(axis, np.int64))
        ways = {"exclusive": int(r.chance(0.5)), "reverse": int(r.chance(0.5))}
        return helper.make_node("CumSum", [name, axis_of], [""], **ways)
    if op == "TopK":
        if np.unique(value).size < value.size or np.any(np.isnan(value.astype(float))):
            return None
        count = r.ints(int(r.rng.integers(1, max(value.shape[axis], 1) + 1)))
        return helper.make_node("TopK", [name, count], ["", ""], axis=axis, largest=int(r.chance(0.5)))
    return helper.make_node(op, [name], [""], axis=axis)


def images(r: Drawing) -> onnx.NodeProto | None:
    shape = (1, int(r.choice([4, 8])), int(r.rng.integers(4, 8)), int(r.rng.integers(4, 8)))
    name = r.new(r.filled(shape, "float32"))
    match r.rng.integers(8):
        case 0:
            return helper.make_node("DepthToSpace", [name], [""], blocksize=2, mode=r.choice(["DCR", "CRD"]))
        case 1:
            return helper.make_node("SpaceToDepth", [name], [""], blocksize=2)
        case 2:
            op = "AveragePool" if r.has_nan(name) else r.choice(["MaxPool", "AveragePool"])
            return helper.make_node(op, [name], [""], kernel_shape=[3, 2], pads=[1, 0, 1, 1], strides=[2, 1])
        case 3:
            weights = r.new(r.rng.standard_normal((3, shape[1], 3, 3)).astype(np.float32))
            if not np.all(np.isfinite(r.value(name))):
                return None
            return helper.make_node("Conv", [name, weights], [""], pads=[1, 1, 1, 1], dilations=[1, 2])
        case 4:
            sizes = r.ints(1, shape[1], *(int(n) for n in r.rng.integers(2, 12, 2)))
            mode = r.choice(["nearest", "linear"])
            if not np.all(np.isfinite(r.value(name))):
                return None
            where = r.choice(["half_pixel", "asymmetric", "align_corners"])
            return helper.make_node(
                "Resize", [name, "", "", sizes], [""], mode=mode, coordinate_transformation_mode=where
            )
        case 5:
            if not np.all(np.isfinite(r.value(name))):
                return None
            return helper.make_node("LRN", [name], [""], size=int(r.rng.integers(1, 6)), alpha=0.5, bias=1.5)
        case 6:
            rank = int(r.rng.integers(3, 6))
            name = r.new(r.filled((2, 3, 4, 2, 3)[:rank], "float32"))
            if r.has_nan(name):
                return None
            return helper.make_node(r.choice(["GlobalMaxPool", "GlobalAveragePool"]), [name], [""])
        case _:
            scale, bias, mean = (r.new(r.rng.standard_normal(shape[1]).astype("f")) for _ in range(3))
            spread = r.new(r.rng.uniform(0.5, 2, shape[1]).astype("f"))
            return helper.make_node("BatchNormalization", [name, scale, bias, mean, spread], [""])
