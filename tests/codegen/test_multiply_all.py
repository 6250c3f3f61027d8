"""multiply_all: experts chosen for each token are products with constant weights, if there are enough tokens."""

import numpy as np
import onnx
import pytest
from onnx import helper

import tvm_neuron
from tests.codegen.graphs import graph_of
from tests.codegen.on_core import check
from tests.onnx_models import make_model
from tvm_neuron import relay
from tvm_neuron.codegen.simplify import make_kernels
from tvm_neuron.errors import PositionError
from tvm_neuron.hw import load_device
from tvm_neuron.schedule.kernel import Gather, Transposition
from tvm_neuron.schedule.rule import load_rules

DEPTH, WIDTH = 40, 24


def _mixture(tokens: int, experts: int) -> onnx.ModelProto:
    """Each token times the matrix of the expert that it names, and what is added for that."""
    weights = {"w": np.random.default_rng(experts).standard_normal((experts, DEPTH, WIDTH)).astype(np.float32) / 6}
    nodes = [
        helper.make_node("Gather", ["w", "chosen"], ["own"], axis=0),
        helper.make_node("MatMul", ["x", "own"], ["y"]),
    ]
    shapes = {"x": (tokens, 1, DEPTH), "chosen": (tokens,)}
    return make_model(nodes, shapes, ["y"], weights, dtypes={"chosen": onnx.TensorProto.INT64})


@pytest.mark.parametrize(("tokens", "experts"), [(6, 3), (3, 3), (2, 5)])
def test_each_token_is_multiplied_by_the_matrix_that_it_names(tokens: int, experts: int) -> None:
    rng = np.random.default_rng(tokens)
    x = rng.standard_normal((tokens, 1, DEPTH)).astype(np.float32)
    chosen = rng.integers(-experts, experts, tokens)  # negative ones count from the end
    check(_mixture(tokens, experts), {"x": x, "chosen": chosen}, "inf2", "all")


@pytest.mark.parametrize(("tokens", "times"), [(64, 1), (2, 2)])
def test_matrices_come_once_or_only_those_that_are_chosen(tokens: int, times: int) -> None:
    mod, params = relay.frontend.from_onnx(_mixture(tokens, 8))
    report = tvm_neuron.report(relay.build(mod, target="neuron/inf2", params=params))
    one = DEPTH * WIDTH * 2
    most = 8 * one if times == 1 else 3 * tokens * one
    others = tokens * (DEPTH + WIDTH + 8) * 4
    assert report.dram_bytes <= most + 2 * others


def test_chosen_matrices_come_with_what_is_summed_on_the_partitions() -> None:
    """The PE array need not turn them: their rows lie so in DRAM, since they are constants."""
    kernels, partition_of = make_kernels(graph_of(_mixture(2, 8), "inf2"), load_rules(), load_device("inf2"))
    (own,) = (kernel.out for kernel in kernels if isinstance(kernel.root, Gather))
    assert own.shape[partition_of[own]] == DEPTH
    assert not any(isinstance(kernel.root, Transposition) and own in kernel.sources() for kernel in kernels)


@pytest.mark.parametrize(("wrong", "counted"), [(5, 5), (-6, -1)])
def test_an_expert_that_is_not_there_is_told(wrong: int, counted: int) -> None:
    mod, params = relay.frontend.from_onnx(_mixture(8, 5))
    executor = relay.build(mod, target="neuron/inf2", params=params)["default"](tvm_neuron.device())
    with pytest.raises(PositionError, match=f"position {counted} lies outside of the 5 elements"):
        executor.run(x=np.ones((8, 1, DEPTH), np.float32), chosen=np.array([0, 1, 2, wrong, 4, 0, 1, 2]))
