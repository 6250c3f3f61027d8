"""Borders are filled before what they surround is computed."""

import numpy as np
from onnx import helper

from tests.codegen.graphs import graph_of
from tests.onnx_models import make_model
from tvm_neuron.codegen.kernels.fill_first import fill_first
from tvm_neuron.codegen.kernels.row_axes import is_fill
from tvm_neuron.codegen.simplify import make_kernels
from tvm_neuron.hw import load_device
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.rule import load_rules


def kernels() -> list[Kernel]:
    """Of two convolutions, the second of which is padded."""
    rng = np.random.default_rng(3)
    weights = {
        "a": rng.standard_normal((128, 128, 1, 1)).astype(np.float32),
        "b": rng.standard_normal((128, 128, 3, 3)).astype(np.float32),
    }
    nodes = [helper.make_node("Conv", ["x", "a"], ["y"]), helper.make_node("Conv", ["y", "b"], ["z"], pads=[1] * 4)]
    model = make_model(nodes, {"x": (1, 128, 12, 12)}, ["z"], weights)
    return make_kernels(graph_of(model), load_rules(), load_device("inf2"))[0]


def test_all_sides_are_filled_before_the_inside() -> None:
    assert [is_fill(kernel) for kernel in kernels()] == [True, True, True, True, False, False]


def test_what_is_written_before_the_fill_stays_before_it() -> None:
    """A fill over all that was written before is no border; nor is one that comes after a reader."""
    *fills, inside, reader = kernels()
    over = Kernel(inside.origins, inside.out, inside.out_maps, inside.channel, inside.free, fills[0].expr)
    assert fill_first([inside, over, reader]) == [inside, over, reader]
    assert fill_first([inside, reader, fills[0]]) == [inside, reader, fills[0]]
    assert fill_first([inside, *fills, reader]) == [*fills, inside, reader]
