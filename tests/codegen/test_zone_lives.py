"""Zones that only some kernels use: weights lie there before these and after."""

from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.codegen.graphs import graph_of
from tests.models.agreement import Case, random_inputs, relative_error
from tests.onnx_models import make_model
from tests.stages.networks import run
from tvm_neuron.allocation.place import Buffer
from tvm_neuron.codegen.function import compile_graph
from tvm_neuron.codegen.options import BuildOptions
from tvm_neuron.codegen.simplify import make_kernels
from tvm_neuron.codegen.zone_lives import zone_lives
from tvm_neuron.codegen.zones import Zones, divide
from tvm_neuron.hw import load_device
from tvm_neuron.isa import DmaCopy, DramTile
from tvm_neuron.neff import Neff
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.rule import load_rules

DEVICE = replace(load_device("inf1"), sbuf_bytes_per_partition=64 * 1024)
SIZE = 20


def network(before: int = 4, behind: int = 3, is_last: bool = False) -> onnx.ModelProto:
    """Layers, a sum with numbers that change along the map and functions of it, and layers again.

    Their last result may have those numbers added, too.
    """
    rng = np.random.default_rng(before)
    nodes, weights = [], {"map": rng.standard_normal((1, 1, SIZE, SIZE)).astype(np.float32)}

    def conv(source: str, name: str, inputs: int, width: int = 3) -> str:
        shape = (256, inputs, width, width)
        weights[f"{name}.w"] = (rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)
        nodes.append(helper.make_node("Conv", [source, f"{name}.w"], [name], name=name, pads=[width // 2] * 4))
        return name

    def step(op: str, *sources: str) -> str:
        nodes.append(helper.make_node(op, sources, [f"{op}{len(nodes)}"], name=f"{op}{len(nodes)}"))
        return nodes[-1].output[0]

    last = conv("x", "first", 16)
    for n in range(before):
        last = conv(last, f"before{n}", 256)
    last = conv(last, "small", 256, 1)
    summed = step("Add", last, "map")
    product = step("Mul", step("Tanh", summed), step("Sigmoid", summed))
    last = step("Add", product, step("Abs", step("Sub", step("Sqrt", step("Abs", summed)), "map")))
    for n in range(behind):
        last = conv(last, f"behind{n}", 256)
    nodes.append(helper.make_node("Add" if is_last else "Relu", [last, "map"][: 1 + is_last], ["y"], name="y"))
    return make_model(nodes, {"x": (1, 16, SIZE, SIZE)}, ["y"], weights)


def kernels_and_zones(model: onnx.ModelProto) -> tuple[list[Kernel], Zones]:
    kernels, partition_of = make_kernels(graph_of(model), load_rules(), DEVICE)
    return kernels, divide(kernels, partition_of, DEVICE, 0, 0)


def users(kernels: list[Kernel]) -> list[int]:
    """The steps of kernels with operators other than convolutions."""
    return [n for n, k in enumerate(kernels) if any(origin.op in ("Add", "Mul") for origin in k.origins)]


def weights_at(neff: Neff) -> list[int]:
    """The first bytes at which weights are put."""
    program = neff.program
    loads = (i for _, i in program.instructions() if isinstance(i, DmaCopy) and isinstance(i.source, DramTile))
    return [i.target.offset.base for i in loads if ".weights" in program.tensors[i.source.tensor].name]


def test_constants_live_as_long_as_the_kernels_that_use_them() -> None:
    kernels, zones = kernels_and_zones(network())
    assert zones.positions_bytes > 0
    lives = zone_lives(zones, kernels, DEVICE)
    assert set(lives) == {zones.positions_at}
    steps, life = users(kernels), lives[zones.positions_at]
    assert life.size == zones.positions_bytes
    assert 0 < steps[0] <= life.first <= life.last <= steps[-1] < len(kernels) - 1


def test_zones_that_no_kernel_needs_are_none() -> None:
    model = make_model([helper.make_node("Relu", ["x"], ["y"])], {"x": (1, 16, SIZE, SIZE)}, ["y"], {})
    kernels, zones = kernels_and_zones(model)
    assert zone_lives(zones, kernels, DEVICE) == {}


def test_diagonals_live_as_long_as_grouped_layers() -> None:
    """And with them the masks that they are made with, right before them."""
    rng = np.random.default_rng(0)
    shapes = {"a": (64, 16, 1, 1), "b": (64, 4, 1, 1), "c": (64, 64, 1, 1), "d": (64, 64, 1, 1)}
    weights = {f"{name}.w": rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    nodes = [
        helper.make_node("Conv", [source, f"{name}.w"], [name], name=name, group=16 if name == "b" else 1)
        for source, name in zip("xabc", "abcd", strict=True)
    ]
    kernels, zones = kernels_and_zones(make_model(nodes, {"x": (1, 16, SIZE, SIZE)}, ["d"], weights))
    lives = zone_lives(zones, kernels, DEVICE)
    (step,) = (n for n, kernel in enumerate(kernels) if kernel.origins[0].name == "b")
    assert lives == {zones.masks_at: Buffer(zones.masks_at, zones.masks_bytes + zones.diagonals_bytes, step, step)}
    assert zones.masks_at + zones.masks_bytes == zones.diagonals_at


def test_constants_stay_between_kernels_that_use_them() -> None:
    kernels, zones = kernels_and_zones(network(is_last=True))
    assert zone_lives(zones, kernels, DEVICE)[zones.positions_at].last == len(kernels) - 1


@pytest.mark.slow
@pytest.mark.parametrize("is_last", [False, True])
def test_weights_lie_there_and_results_are_those_of_onnxruntime(is_last: bool) -> None:
    model = network(is_last=is_last)
    _, zones = kernels_and_zones(model)
    neff = compile_graph(graph_of(model), "network", DEVICE, BuildOptions())
    assert any(at < zones.tensors_at for at in weights_at(neff))
    case = Case(model, random_inputs(model))
    assert relative_error(run(neff, case.inputs, "strict")["y"], case.exact["y"]) < case.bounds["y"]
