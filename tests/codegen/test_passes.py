"""Every step on the way to kernels keeps the meaning of the graph, to float64's precision."""

from collections.abc import Callable

import numpy as np
import pytest

from tests.codegen.graphs import SMALL, graph_of
from tests.codegen.interpreter import run_graph, run_kernels
from tests.codegen.random_networks import RandomNetwork
from tests.onnx_models import reference
from tvm_neuron.codegen.passes.before_moves import compute_before_moves
from tvm_neuron.codegen.passes.canonical import canonical
from tvm_neuron.codegen.passes.fold import fold_constants
from tvm_neuron.codegen.passes.layout import assign_partitions
from tvm_neuron.codegen.passes.moves import read_through, write_through
from tvm_neuron.codegen.passes.padding import pad_in_order, sum_through_padding
from tvm_neuron.codegen.passes.pieces import cut_pieces
from tvm_neuron.codegen.passes.row_values import subtract_as_add
from tvm_neuron.codegen.passes.separate_parts import separate_parts
from tvm_neuron.codegen.simplify import make_kernels
from tvm_neuron.hw import load_device
from tvm_neuron.schedule.graph import Graph, linear_indices
from tvm_neuron.schedule.kernel import Contraction
from tvm_neuron.schedule.rule import load_rules

Pass = Callable[[Graph], object]
SEEDS = range(300, 316)


def make_canonical(graph: Graph) -> None:
    graph.blocks = [canonical(block) for block in graph.blocks]


def place_and_write_through(graph: Graph) -> None:
    write_through(graph, assign_partitions(graph, {}), 32, lambda _move: 0)


PASSES: list[Pass] = [
    fold_constants, cut_pieces, make_canonical, subtract_as_add, compute_before_moves, read_through,
    separate_parts, sum_through_padding, pad_in_order, place_and_write_through,
]  # fmt: skip


def small(seed: int) -> RandomNetwork:
    return RandomNetwork(seed, operators=6, largest=8, channels=SMALL)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_pass_keeps_the_meaning(seed: int) -> None:
    network = small(seed)
    graph, inputs = graph_of(network.model()), network.inputs()
    (output,) = graph.outputs
    before = run_graph(graph, inputs)[output]
    # The graph itself means the model: float32 in onnxruntime against float64.
    np.testing.assert_allclose(before, reference(network.model(), inputs)[0], rtol=1e-4, atol=1e-5)
    for change in PASSES:
        change(graph)
        after = run_graph(graph, inputs)[output]
        # Constants may be folded in float32.
        np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-6, err_msg=str(change))


@pytest.mark.parametrize("seed", SEEDS)
def test_kernels_keep_the_meaning(seed: int) -> None:
    network = small(seed)
    graph, inputs = graph_of(network.model()), network.inputs()
    (output,) = graph.outputs
    before = run_graph(graph, inputs)[output]
    kernels, partition_of = make_kernels(graph, load_rules(), load_device("inf1"))
    after = run_kernels(kernels, partition_of, graph, inputs)[output]
    np.testing.assert_allclose(after, before, rtol=1e-4, atol=1e-5)  # scales are folded into float32 weights


@pytest.mark.parametrize("seed", SEEDS)
def test_operands_lie_on_the_partitions_of_the_result(seed: int) -> None:
    kernels, partition_of = make_kernels(graph_of(small(seed).model()), load_rules(), load_device("inf1"))
    for kernel in kernels:
        if kernel.by_dma:
            continue
        for load in kernel.operand_loads():
            part = (linear_indices(load.indices) or ())[partition_of[load.tensor]]
            assert set(part.terms) <= {kernel.channel}
            assert part.const % 32 == 0
        assert set(kernel.out_maps[partition_of[kernel.out]].terms) <= {kernel.channel}
        if isinstance(kernel.root, Contraction):
            assert kernel.root.maps[partition_of[kernel.root.data]].const % 32 == 0
