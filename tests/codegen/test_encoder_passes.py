"""What becomes of norms and softmaxes in an encoder: the same numbers to float64's precision, by cheap instructions."""

import numpy as np

from tests.codegen.graphs import graph_of
from tests.codegen.interpreter import run_graph, run_kernels
from tests.codegen.transformers import Encoder
from tvm_neuron.codegen.emit.positions import positional
from tvm_neuron.codegen.simplify import make_kernels
from tvm_neuron.hw import load_device
from tvm_neuron.schedule.expr import Apply, Expr, Load
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.rule import load_rules


def kernels_of(encoder: Encoder) -> list[Kernel]:
    """Its kernels on inf1, which compute what its graph means."""
    graph = graph_of(encoder.model())
    (output,) = graph.outputs
    wanted = run_graph(graph, encoder.inputs())[output]
    kernels, partition_of = make_kernels(graph, load_rules(), load_device("inf1"))
    actual = run_kernels(kernels, partition_of, graph, encoder.inputs())[output]
    np.testing.assert_allclose(actual, wanted, rtol=1e-4, atol=1e-5)  # constants are folded in float32
    return kernels


def operations(expr: Expr) -> list[tuple[str, Expr]]:
    if not isinstance(expr, Apply):
        return []
    return [(expr.op, expr.args[-1]), *(found for arg in expr.args for found in operations(arg))]


def test_scales_of_norms_wait_for_the_partitions() -> None:
    kernels = kernels_of(Encoder(64, 4, 32, layers=2))
    last = [kernel for kernel in kernels if kernel.out.kind == "output"]
    assert {kernel.out for kernel in kernels if list(positional(kernel))} == {kernel.out for kernel in last}


def test_means_and_maxima_are_added_with_the_other_sign() -> None:
    found = [pair for kernel in kernels_of(Encoder(64, 4, 32)) for pair in operations(kernel.expr)]
    assert not [right for op, right in found if op == "subtract" and isinstance(right, Load)]
    added = {right.tensor.name for op, right in found if op == "add" and isinstance(right, Load)}
    assert {name.rpartition(".")[2] for name in added} >= {"negative"}
