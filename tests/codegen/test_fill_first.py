"""Borders are filled before what they surround is computed."""

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.codegen.graphs import graph_of
from tests.codegen.test_fold_rows import check
from tests.onnx_models import make_model
from tests.stages.networks import compile_model
from tvm_neuron.codegen.kernels.fill_first import fill_first
from tvm_neuron.codegen.kernels.row_axes import is_fill
from tvm_neuron.codegen.simplify import make_kernels
from tvm_neuron.hw import load_device
from tvm_neuron.isa import Memset
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.rule import load_rules


def padded(channels: int, size: int) -> onnx.ModelProto:
    """Two convolutions, the second of which is padded."""
    rng = np.random.default_rng(3)
    weights = {
        "a": (rng.standard_normal((channels, channels, 1, 1)) / channels**0.5).astype(np.float32),
        "b": (rng.standard_normal((channels, channels, 3, 3)) / channels).astype(np.float32),
    }
    nodes = [helper.make_node("Conv", ["x", "a"], ["y"]), helper.make_node("Conv", ["y", "b"], ["z"], pads=[1] * 4)]
    return make_model(nodes, {"x": (1, channels, size, size)}, ["z"], weights)


def kernels() -> list[Kernel]:
    return make_kernels(graph_of(padded(128, 12)), load_rules(), load_device("inf2"))[0]


def test_all_sides_are_filled_before_the_inside() -> None:
    assert [is_fill(kernel) for kernel in kernels()] == [True, True, True, True, False, False]


def test_what_is_written_before_the_fill_stays_before_it() -> None:
    """A fill over all that was written before is no border; nor is one that comes after a reader."""
    *fills, inside, reader = kernels()
    over = Kernel(inside.origins, inside.out, inside.out_maps, inside.channel, inside.free, fills[0].expr)
    assert fill_first([inside, over, reader]) == [inside, over, reader]
    assert fill_first([inside, reader, fills[0]]) == [inside, reader, fills[0]]
    assert fill_first([inside, *fills, reader]) == [*fills, inside, reader]


def test_all_chunks_of_channels_are_filled_at_once() -> None:
    """Each side of 300 channels in two instructions: one for two chunks, and one for the 44 channels beside them."""
    model = padded(300, 12)
    program = compile_model(model, "neuron/inf2").program
    fills = [step.result.shape for _, step in program.instructions() if isinstance(step, Memset)]
    assert sorted(fills) == sorted([(128, 2, 14), (44, 14)] * 2 + [(128, 2, 12), (44, 12)] * 2)
    check(model, "inf2")


@pytest.mark.parametrize(("chip", "engine"), [("inf1", "pool"), ("inf2", "gpsimd")])
def test_gpsimd_fills_where_there_is_one(chip: str, engine: str) -> None:
    model = padded(16, 12)
    steps = [step for _, step in compile_model(model, f"neuron/{chip}").program.instructions()]
    assert {step.engine for step in steps if isinstance(step, Memset)} == {engine}
    check(model, chip)


@pytest.mark.slow
def test_large_fills_are_done_chunk_by_chunk() -> None:
    program = compile_model(padded(300, 300), "neuron/inf2").program
    fills = [(counts, step.result.shape) for counts, step in program.instructions() if isinstance(step, Memset)]
    assert ((2,), (128, 302)) in fills
