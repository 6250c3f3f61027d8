"""run_amid_weights: heads run where the PE array would wait for the weights of later layers; outputs are the same."""

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.codegen.graphs import graph_of
from tests.models.agreement import Case, random_inputs, relative_error
from tests.onnx_models import make_model
from tests.stages.networks import compile_model, run
from tvm_neuron.codegen.kernels.storage_dtypes import choose_dtypes
from tvm_neuron.codegen.overlap.amid_weights import run_amid_weights
from tvm_neuron.codegen.simplify import make_kernels
from tvm_neuron.codegen.stage import Stage
from tvm_neuron.hw import load_device
from tvm_neuron.schedule.kernel import Contraction
from tvm_neuron.schedule.rule import load_rules


def detector(deep: int, size: int = 28, wide: int = 64) -> onnx.ModelProto:
    """A head of `wide` channels after the first layer; then layers of `deep` channels and more, and their head."""
    rng = np.random.default_rng(deep)
    shapes = {
        "first": (128, 128, 3, 3), "head": (wide, 128, 3, 3), "boxes": (8, wide, 1, 1), "down": (deep, 128, 3, 3),
        "deep": (2 * deep, deep, 3, 3), "last": (8, 2 * deep, 1, 1),
    }  # fmt: skip
    weights = {
        name: (rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)
        for name, shape in shapes.items()
    }
    flow = {"first": "x", "head": "first", "boxes": "head", "down": "first", "deep": "down", "last": "deep"}
    nodes = []
    for name, source in flow.items():
        source = source if source == "x" else f"{source}.out"
        pad = shapes[name][-1] // 2
        strides = [4, 4] if name == "down" else [1, 1]
        nodes.append(
            helper.make_node("Conv", [source, name], [f"{name}.out"], name=name, pads=[pad] * 4, strides=strides)
        )
    return make_model(nodes, {"x": (1, 128, size, size)}, ["boxes.out", "last.out"], weights)


def _order(model: onnx.ModelProto) -> list[str]:
    device = load_device("inf1")
    kernels, partition_of = make_kernels(graph_of(model), load_rules(), device)
    stage = Stage("detector", kernels, partition_of, choose_dtypes(kernels), {}, {})
    found = run_amid_weights(stage, device)
    assert set(found) == set(kernels)
    return [kernel.origins[0].name for kernel in found if isinstance(kernel.root, Contraction)]


def test_a_head_comes_amid_layers_that_wait_for_their_weights() -> None:
    assert _order(detector(512)) == ["first", "down", "deep", "head", "boxes", "last"]


def test_a_head_keeps_its_place_where_weights_are_there_in_time() -> None:
    assert _order(detector(64)) == ["first", "head", "boxes", "down", "deep", "last"]


def test_a_head_keeps_its_place_where_what_it_reads_takes_much_memory() -> None:
    assert _order(detector(512, size=112)) == ["first", "head", "boxes", "down", "deep", "last"]


@pytest.mark.parametrize("mode", ["nest", "strict"])
def test_outputs_are_the_same(mode: str) -> None:
    model = detector(512)
    case = Case(model, random_inputs(model))
    found = run(compile_model(model, "neuron/inf1"), case.inputs, mode)
    for name, exact in case.exact.items():
        assert relative_error(found[name], exact) < case.bounds[name]
