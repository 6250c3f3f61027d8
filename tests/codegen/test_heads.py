"""Detectors' heads: positions by anchors, made of a convolution's rows and columns, never move element by element."""

from dataclasses import dataclass

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

from tests.onnx_models import make_model
from tests.stages.networks import compile_model, run
from tvm_neuron.isa import DmaCopy

CHANNELS = 32


@dataclass(frozen=True)
class Level:
    """One head: `anchors` boxes of 4 + 1 + `classes` values at each of rows x columns positions."""

    rows: int
    columns: int
    anchors: int
    classes: int

    def nodes(self, name: str) -> tuple[list[onnx.NodeProto], dict[str, np.ndarray]]:
        """From an image x to boxes `<name>b` [n, N, 4] and scores `<name>s` [n, N, classes]."""
        values = 5 + self.classes
        rng = np.random.default_rng(self.rows)
        weight = rng.standard_normal((self.anchors * values, CHANNELS, 1, 1)).astype(np.float32)
        count = self.rows * self.columns * self.anchors
        weights = {
            f"{name}w": weight / np.float32(CHANNELS**0.5),
            f"{name}shape": np.array([0, count, values]),
            f"{name}cells": rng.standard_normal((1, count, 2)).astype(np.float32),
            f"{name}parts": np.array([2, 2, 1, self.classes]),
        }
        split = [f"{name}{part}" for part in ("xy", "wh", "likely", "class")]
        nodes = [
            helper.make_node("Conv", [f"{name}x", f"{name}w"], [f"{name}y"]),
            helper.make_node("Transpose", [f"{name}y"], [f"{name}t"], perm=[0, 2, 3, 1]),
            helper.make_node("Reshape", [f"{name}t", f"{name}shape"], [f"{name}r"]),
            helper.make_node("Sigmoid", [f"{name}r"], [f"{name}g"]),
            helper.make_node("Split", [f"{name}g", f"{name}parts"], split, axis=2),
            helper.make_node("Add", [split[0], f"{name}cells"], [f"{name}centre"]),
            helper.make_node("Exp", [split[1]], [f"{name}size"]),
            helper.make_node("Sub", [f"{name}centre", f"{name}size"], [f"{name}low"]),
            helper.make_node("Add", [f"{name}centre", f"{name}size"], [f"{name}high"]),
            helper.make_node("Concat", [f"{name}low", f"{name}high"], [f"{name}b"], axis=2),
            helper.make_node("Mul", [split[2], split[3]], [f"{name}s"]),
        ]
        return nodes, weights


def _model(levels: list[Level], batch: int) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    nodes: list[onnx.NodeProto] = []
    weights: dict[str, np.ndarray] = {}
    for at, level in enumerate(levels):
        more, constants = level.nodes(f"h{at}_")
        nodes += more
        weights |= constants
    for kind in "bs":
        nodes.append(helper.make_node("Concat", [f"h{at}_{kind}" for at in range(len(levels))], [kind], axis=1))
    nodes.append(helper.make_node("Transpose", ["s"], ["c"], perm=[0, 2, 1]))
    shapes = {f"h{at}_x": (batch, CHANNELS, level.rows, level.columns) for at, level in enumerate(levels)}
    rng = np.random.default_rng(7)
    inputs = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    return make_model(nodes, shapes, ["b", "c"], weights), inputs


@pytest.mark.parametrize(
    ("levels", "batch"),
    [
        ([Level(16, 16, 3, 20), Level(8, 8, 3, 20)], 1),
        ([Level(9, 7, 3, 6), Level(5, 4, 2, 6), Level(3, 2, 1, 6)], 1),
        ([Level(6, 11, 4, 40)], 1),
        ([Level(7, 5, 3, 4), Level(4, 3, 3, 4)], 2),
        ([Level(3, 140, 2, 5)], 1),
    ],
)
@pytest.mark.parametrize("chip", ["inf1", "inf2"])
def test_a_head_agrees_with_onnxruntime(levels: list[Level], batch: int, chip: str) -> None:
    model, inputs = _model(levels, batch)
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, inputs)
    made = compile_model(model, f"neuron/{chip}")
    actual = run(made, inputs)
    for name, wanted in zip("bc", expected, strict=True):
        np.testing.assert_allclose(actual[name], wanted, atol=0.06)  # bf16: sums of a few numbers of up to 4


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
def test_no_element_goes_through_dram_on_its_way_between_partitions(chip: str) -> None:
    model, _ = _model([Level(16, 16, 3, 20), Level(8, 8, 3, 20)], 1)
    made = compile_model(model, f"neuron/{chip}")
    assert made.memory["spill"] == 0
    transfers = [node.cost(made.device) for _, node in made.program.instructions() if isinstance(node, DmaCopy)]
    assert max(cost.busy_cycles for cost in transfers) < 20_000  # ns; 20,480 scores one by one take 720,000 on inf1
