"""What becomes of norms and softmaxes in an encoder: the same numbers to float64's precision, by cheap instructions."""

import numpy as np
from onnx import helper

from tests.codegen.graphs import graph_of
from tests.codegen.interpreter import run_graph, run_kernels
from tests.codegen.transformers import Encoder
from tests.onnx_models import make_model
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


def test_arithmetic_on_a_moved_tensor_is_done_before_the_move() -> None:
    """Queries that are scaled as heads: the projection takes on the scale, and the product reads its result."""
    random = np.random.default_rng(0)
    weights = {
        "w": random.standard_normal((64, 128)).astype(np.float32),
        "heads": np.int64([1, -1, 4, 32]),
        "scale": np.float32(0.3),
    }
    nodes = [
        node
        for source, order in (("x", [0, 2, 1, 3]), ("z", [0, 2, 3, 1]))
        for node in (
            helper.make_node("MatMul", [source, "w"], [f"{source}w"]),
            helper.make_node("Reshape", [f"{source}w", "heads"], [f"{source}split"]),
            helper.make_node("Transpose", [f"{source}split"], [f"{source}turned"], perm=order),
            helper.make_node("Mul", [f"{source}turned", "scale"], [f"{source}scaled"]),
        )
    ]
    nodes.append(helper.make_node("MatMul", ["xscaled", "zscaled"], ["y"]))
    shapes = {"x": (1, 16, 64), "z": (1, 6, 64)}
    graph = graph_of(make_model(nodes, shapes, ["y"], weights))
    inputs = {name: random.standard_normal(shape) for name, shape in shapes.items()}
    (output,) = graph.outputs
    wanted = run_graph(graph, inputs)[output]
    kernels, partition_of = make_kernels(graph, load_rules(), load_device("inf1"))
    actual = run_kernels(kernels, partition_of, graph, inputs)[output]
    np.testing.assert_allclose(actual, wanted, rtol=1e-4, atol=1e-5)
    assert not [kernel for kernel in kernels if kernel.by_dma]


def test_scales_of_norms_wait_for_the_partitions() -> None:
    kernels = kernels_of(Encoder(64, 4, 32, layers=2))
    last = [kernel for kernel in kernels if kernel.out.kind == "output"]
    assert {kernel.out for kernel in kernels if list(positional(kernel))} == {kernel.out for kernel in last}


def test_means_and_maxima_are_added_with_the_other_sign() -> None:
    found = [pair for kernel in kernels_of(Encoder(64, 4, 32)) for pair in operations(kernel.expr)]
    subtracted = [right.tensor.name for op, right in found if op == "subtract" and isinstance(right, Load)]
    assert all(name.endswith(".statistics") for name in subtracted)  # POOL subtracts these, and multiplies at once
    added = {right.tensor.name for op, right in found if op == "add" and isinstance(right, Load)}
    assert {name.rpartition(".")[2] for name in added} >= {"negative"}
