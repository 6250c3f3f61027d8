"""Rows with a value each in one instruction, where that keeps engines for less time than one for each row."""

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.codegen.on_core import check
from tests.onnx_models import make_model
from tests.stages.networks import compile_model
from tvm_neuron.codegen.steps import without
from tvm_neuron.isa import Select


def guarded(heads: int, tokens: int, columns: int) -> onnx.ModelProto:
    """Rows divided by a value each, but where it is negative: then they are zero."""
    node = helper.make_node
    nodes = [
        node("ReduceSum", ["x", "last"], ["s"], keepdims=1), node("Less", ["s", "zero"], ["is"]),
        node("Exp", ["s"], ["e"]), node("Div", ["x", "e"], ["p"]), node("Where", ["is", "zero", "p"], ["y"]),
    ]  # fmt: skip
    weights = {"zero": np.zeros((), np.float32), "last": np.array([-1])}
    return make_model(nodes, {"x": (heads, tokens, columns)}, ["y"], weights)


@pytest.mark.parametrize(("heads", "columns", "rows"), [(4, 64, 4), (3, 130, 3), (2, 512, 1)])
def test_short_rows_share_instructions(heads: int, columns: int, rows: int) -> None:
    with without("spread_sums"):  # else rows lie along the partitions, and the array adds them up
        program = compile_model(guarded(heads, 128, columns), "neuron/inf2").program
    shapes = {step.result.shape for _, step in program.instructions() if isinstance(step, Select)}
    assert shapes == ({(128, rows, columns)} if rows > 1 else {(128, columns)})


@pytest.mark.parametrize(("chip", "precision"), [("inf1", "all"), ("inf2", "none")])
@pytest.mark.parametrize("shape", [(4, 128, 64), (5, 200, 70), (20, 30, 65), (3, 129, 300)])
def test_beside_onnxruntime(shape: tuple[int, int, int], chip: str, precision: str) -> None:
    x = np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32) / shape[-1] ** 0.5
    check(guarded(*shape), {"x": x}, chip, precision, roundings=64)  # exp of a sum: the sum's roundings grow
