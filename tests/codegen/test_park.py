"""A tensor that lies idle goes to DRAM and back as a whole, and nothing else changes."""

import numpy as np
import pytest
from onnx import helper

from tests.codegen.graphs import graph_of
from tests.codegen.interpreter import run_kernels
from tests.onnx_models import make_model
from tvm_neuron.codegen.simplify import make_kernels
from tvm_neuron.codegen.tiles.park import AHEAD, park
from tvm_neuron.hw import load_device
from tvm_neuron.schedule.rule import load_rules

LAYERS = 6
SAME = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}


def _around(is_concatenation: bool):
    """A first layer, which later ones lead back to."""
    rng = np.random.default_rng(2)
    weights = {f"w{n}": (rng.standard_normal((8, 8, 3, 3)) / 9).astype(np.float32) for n in range(LAYERS)}
    nodes = [
        helper.make_node("Conv", ["x" if n == 0 else f"c{n - 1}", f"w{n}"], [f"c{n}"], **SAME) for n in range(LAYERS)
    ]
    last = f"c{LAYERS - 1}"
    nodes.append(
        helper.make_node("Concat", ["c0", last], ["y"], axis=1)
        if is_concatenation
        else helper.make_node("Add", ["c0", last], ["y"])
    )
    graph = graph_of(make_model(nodes, {"x": (1, 8, 6, 6)}, ["y"], weights))
    return graph, *make_kernels(graph, load_rules(), load_device("inf1"))


def test_what_lies_idle_is_stored_and_comes_back_shortly_before_its_use() -> None:
    graph, kernels, partition_of = _around(is_concatenation=False)
    steps = {}
    for step, kernel in enumerate(kernels):
        for tensor in kernel.tensors:
            steps.setdefault(tensor, []).append(step)
    tensor, touched = max(
        ((t, s) for t, s in steps.items() if t.kind == "temp"),
        key=lambda found: np.diff([found[1][0], *found[1]]).max(),
    )
    gap = int(np.diff(touched).argmax())
    first, end = touched[gap] + 1, touched[gap] + 2
    found = park(kernels, first, end, tensor, partition_of)
    assert found is not None
    assert found.kernels[found.first : found.end] == kernels[first:end]
    store, load = (next(k for k in found.kernels if k.out is t) for t in (found.stored, found.other))
    assert store.by_dma
    assert load.by_dma
    assert found.kernels.index(store) == touched[gap] + 1
    assert not any(tensor in kernel.tensors for kernel in found.kernels[found.end :])
    assert set(found.kernels) >= {kernel for kernel in kernels if tensor not in kernel.tensors}
    again = [step for step, kernel in enumerate(found.kernels) if found.other in kernel.sources()]
    assert again[0] - found.kernels.index(load) == AHEAD + 1
    inputs = {"x": np.random.default_rng(1).standard_normal((1, 8, 6, 6))}
    (y,) = graph.outputs
    wanted = run_kernels(kernels, partition_of, graph, inputs)[y]
    places = partition_of | dict.fromkeys((found.stored, found.other), partition_of[tensor])
    np.testing.assert_array_equal(run_kernels(found.kernels, places, graph, inputs)[y], wanted)
    assert park(kernels, touched[gap], end, tensor, partition_of) is None, "the group reads or writes it"


@pytest.mark.parametrize("is_begun", [True, False])
def test_what_is_made_in_parts_or_not_read_again_stays(is_begun: bool) -> None:
    _, kernels, partition_of = _around(is_concatenation=True)
    writers = [step for step, kernel in enumerate(kernels) if kernel.out.name == "y"]
    assert len(writers) == 2
    first = writers[0] + 1 if is_begun else len(kernels) - 1
    tensor = kernels[writers[0]].out if is_begun else kernels[0].out
    assert park(kernels, first, first + 1, tensor, partition_of) is None


def test_what_was_begun_comes_back_into_a_tensor_that_begins_then() -> None:
    """Half of what is concatenated is made early: the whole of it takes no memory until the other half is."""
    rng = np.random.default_rng(3)
    weights = {f"w{n}": (rng.standard_normal((32, 32, 3, 3)) / 17).astype(np.float32) for n in range(LAYERS)}
    weights["last"] = rng.standard_normal((4, 64, 1, 1)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["x" if n < 2 else f"c{n - 1}", f"w{n}"], [f"c{n}"], **SAME) for n in range(LAYERS)
    ]
    nodes.append(helper.make_node("Concat", [f"c{LAYERS - 1}", "c0"], ["both"], axis=1))
    nodes.append(helper.make_node("Conv", ["both", "last"], ["y"]))
    graph = graph_of(make_model(nodes, {"x": (1, 32, 6, 6)}, ["y"], weights))
    kernels, partition_of = make_kernels(graph, load_rules(), load_device("inf1"))
    (tensor,) = {k.out for k in kernels if k.out.shape == (1, 64, 6, 6)}
    made, other = (step for step, kernel in enumerate(kernels) if kernel.out is tensor)
    found = park(kernels, made + 1, made + 2, tensor, partition_of)
    assert found is not None
    touched = [step for step, kernel in enumerate(found.kernels) if tensor in kernel.tensors]
    assert touched[0] == other + 1 - AHEAD
    assert found.kernels[touched[0]].by_dma
    assert found.other.shape == found.stored.shape == (1, 32, 6, 6)
    assert found.kernels[made].out is found.other
    inputs = {"x": rng.standard_normal((1, 32, 6, 6))}
    (y,) = graph.outputs
    wanted = run_kernels(kernels, partition_of, graph, inputs)[y]
    places = partition_of | dict.fromkeys((found.stored, found.other), partition_of[tensor])
    np.testing.assert_array_equal(run_kernels(found.kernels, places, graph, inputs)[y], wanted)
