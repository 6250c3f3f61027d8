"""Networks whose tensors exceed SBUF run in tiles: the same outputs, little traffic, each row computed once."""

from dataclasses import replace
from math import prod
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.codegen.dense import dense
from tests.codegen.graphs import graph_of
from tests.codegen.interpreter import run_kernels
from tests.models.agreement import Case, random_inputs, relative_error
from tests.onnx_models import make_model
from tests.stages.networks import compile_model, run
from tests.stages.test_small_memory import shrunk
from tvm_neuron.codegen.kernels.storage_dtypes import choose_dtypes
from tvm_neuron.codegen.simplify import make_kernels
from tvm_neuron.codegen.stage import Stage
from tvm_neuron.codegen.steps import without
from tvm_neuron.codegen.tiles.ahead import Ahead, halves
from tvm_neuron.codegen.tiles.group import group_of
from tvm_neuron.codegen.tiles.unroll import unroll
from tvm_neuron.hw import load_device
from tvm_neuron.schedule.graph import Graph
from tvm_neuron.schedule.kernel import Contraction, Kernel
from tvm_neuron.schedule.rule import load_rules
from tvm_neuron.sim import time_program

SAME = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}


def _hourglass(batch: int = 1, size: int = 48) -> onnx.ModelProto:
    """Down and up again with what is cut across: strided windows, overlapping pools, a tensor of two writers."""
    rng = np.random.default_rng(5)

    def normal(*shape: int) -> np.ndarray:
        return (rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)

    weights = {
        "w1": normal(32, 3, 3, 3), "w2": normal(32, 32, 3, 3), "w3": normal(64, 32, 3, 3), "w4": normal(64, 32, 2, 2),
        "w5": normal(16, 64, 3, 3), "b": normal(32, 1)[:, 0],
    }  # fmt: skip
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b"], ["c1"], **SAME),
        helper.make_node("Relu", ["c1"], ["r1"]),
        helper.make_node("Conv", ["r1", "w2"], ["c2"], **SAME),
        helper.make_node("Add", ["c2", "r1"], ["across"]),
        helper.make_node("MaxPool", ["across"], ["p"], strides=[2, 2], **SAME),
        helper.make_node("Conv", ["p", "w3"], ["c3"], **SAME),
        helper.make_node("Relu", ["c3"], ["r3"]),
        helper.make_node("ConvTranspose", ["r3", "w4"], ["up"], strides=[2, 2], kernel_shape=[2, 2]),
        helper.make_node("Concat", ["across", "up"], ["both"], axis=1),
        helper.make_node("Conv", ["both", "w5"], ["y"], **SAME),
    ]
    return make_model(nodes, {"x": (batch, 3, size, size)}, ["y"], weights)


@pytest.mark.slow
@pytest.mark.parametrize(("kib", "batch"), [(32, 1), (40, 3), (28, 4)])  # the last cuts single images further
def test_in_little_memory_as_onnxruntime(kib: int, batch: int, tmp_path: Path) -> None:
    model = _hourglass(batch)
    case = Case(model, random_inputs(model))
    tight = compile_model(model, shrunk(tmp_path, "inf1", kib))
    found = run(tight, case.inputs, "strict")["y"]
    assert relative_error(found, case.exact["y"]) < case.bounds["y"]


def test_weights_come_once_for_all_tiles(tmp_path: Path) -> None:
    tight = compile_model(_hourglass(), shrunk(tmp_path, "inf1", 32))
    matmuls = sum(1 for _, i in tight.program.instructions() if i.mnemonic == "nc_matmul")
    assert matmuls > 10  # of five convolutions: they run in tiles
    traffic = time_program(tight.program, tight.device).dram_bytes_by_kind
    assert traffic["weight"] == sum(array.nbytes for array in tight.weights.values())


@pytest.mark.slow
@pytest.mark.parametrize(("kib", "most"), [(24, 0), (20, 3)])
def test_several_groups_of_tiles_leave_little_in_dram(kib: int, most: int, tmp_path: Path) -> None:
    """There is room for few rows of the image's size: what a group leaves behind lies in DRAM, nothing else.

    At most as many times a tensor of half the image's size goes there or back.
    """
    rng = np.random.default_rng(5)
    sizes = {"w1": (72, 3), "w2": (72, 72), "w3": (80, 72), "w4": (72, 80), "w5": (72, 72)}
    shapes = {name: (*channels, 3, 3) for name, channels in sizes.items()}
    weights = {n: (rng.standard_normal(s) / np.sqrt(np.prod(s[1:]))).astype(np.float32) for n, s in shapes.items()}
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["c1"], **SAME),
        helper.make_node("Relu", ["c1"], ["r1"]),
        helper.make_node("Conv", ["r1", "w2"], ["c2"], strides=[2, 2], **SAME),
        helper.make_node("Relu", ["c2"], ["r2"]),
        helper.make_node("Conv", ["r2", "w3"], ["c3"], **SAME),
        helper.make_node("Relu", ["c3"], ["r3"]),
        helper.make_node("Conv", ["r3", "w4"], ["c4"], **SAME),
        helper.make_node("Add", ["c4", "r2"], ["sum"]),
        helper.make_node("Conv", ["sum", "w5"], ["y"], **SAME),
    ]
    model = make_model(nodes, {"x": (1, 3, 224, 224)}, ["y"], weights)
    tight = compile_model(model, shrunk(tmp_path, "inf1", kib))
    case = Case(model, random_inputs(model))
    assert relative_error(run(tight, case.inputs)["y"], case.exact["y"]) < case.bounds["y"]
    traffic = time_program(tight.program, tight.device).dram_bytes_by_kind
    between = 2 * 72 * 112 * 112  # bytes of what is made at half the image's size
    assert traffic.get("scratch", 0) <= most * between


@pytest.mark.slow
@pytest.mark.parametrize(
    ("channels", "layers", "size", "kib"), [(96, 4, 28, 24), (64, 6, 28, 20), (64, 6, 28, 28), (64, 6, 56, 64)]
)
def test_layers_that_read_more_rows_than_they_add_channels_to(
    channels: int, layers: int, size: int, kib: int, tmp_path: Path
) -> None:
    """A window reaches beyond the rows of a tile, in a tensor that the tile has written in part."""
    model = dense(channels, layers, size, batch=4)
    case = Case(model, random_inputs(model))
    found = run(compile_model(model, shrunk(tmp_path, "inf1", kib)), case.inputs)["y"]
    assert relative_error(found, case.exact["y"]) < case.bounds["y"]


def test_first_tiles_may_have_nothing_to_do() -> None:
    """Tiles of a large batch in which nothing can be computed yet, since a window reaches over several of them."""
    window = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4, "dilations": [2, 2]}
    node = helper.make_node("MaxPool", ["x"], ["y"], **window)
    model = make_model([node], {"x": (20, 16, 50, 44)}, ["y"], {})
    case = Case(model, random_inputs(model))
    found = run(compile_model(model, "neuron/inf1"), case.inputs)["y"]
    assert relative_error(found, case.exact["y"]) < case.bounds["y"]


def _stage(graph: Graph | None = None, has_phases: bool = False) -> Stage:
    """Of kernels as they are by rows: the input comes into its padding by DMA, and what is enlarged is a map, too."""
    small = replace(load_device("inf1"), sbuf_bytes_per_partition=8 << 10)  # no packed image fits: they stay in rows
    with without("choose_routes", *([] if has_phases else ["polyphase"])):
        kernels, partition_of = make_kernels(graph or graph_of(_hourglass()), load_rules(), small)
    return Stage("hourglass", kernels, partition_of, choose_dtypes(kernels), {}, {})


def _macs(kernels: list[Kernel]) -> int:
    return sum(
        k.root.weights.size * int(np.prod([axis.extent for axis in k.free]))
        for k in kernels
        if isinstance(k.root, Contraction)
    )


@pytest.mark.parametrize("tiles", [2, 3, 5, 16, 48])
def test_no_row_is_computed_twice(tiles: int) -> None:
    stage = _stage()
    kernels, outside = tuple(stage.kernels), stage.in_dram()
    group = group_of(kernels, 2, (), set(), outside, stage.partition_of, stage.dtypes)
    assert group is not None
    found = unroll(group, tiles, frozenset(outside))
    assert found is not None
    assert _macs(found.kernels) == _macs(stage.kernels)
    assert max(t.shape[2] for t in found.partition_of) <= 2 * -(-48 // tiles) + 2  # and what a 3x3 window reads again


@pytest.mark.parametrize("tiles", [2, 5, 48])
def test_no_row_of_a_phase_is_computed_twice(tiles: int) -> None:
    """Phases write every second row each, and a tile may begin with any of them."""
    stage = _stage(has_phases=True)
    kernels, outside = tuple(stage.kernels), stage.in_dram()
    assert any(step > 1 for kernel in kernels for step in kernel.out_maps[-1].terms.values())
    group = group_of(kernels, 2, (), set(), outside, stage.partition_of, stage.dtypes)
    assert group is not None
    found = unroll(group, tiles, frozenset(outside))
    assert found is not None
    assert _macs(found.kernels) == _macs(stage.kernels)


def test_what_only_dma_makes_is_made_whole_for_those_after_the_group() -> None:
    stage = _stage()
    packed = next(k.root.data for k in stage.kernels if isinstance(k.root, Contraction))
    kernels = tuple(k for k in stage.kernels if k.out is packed)
    assert any(kernel.by_dma for kernel in kernels)
    group = group_of(kernels, 2, (), {packed}, stage.in_dram(), stage.partition_of, stage.dtypes)
    assert group is not None
    found = unroll(group, 4, frozenset())
    assert found is not None
    parts = found.kernels
    elems = [sum(k.channel.extent * prod(a.extent for a in k.free) for k in every) for every in (parts, kernels)]
    assert elems[0] == elems[1]
    assert {kernel.out for kernel in parts} == {packed}


def test_what_reads_all_rows_is_not_cut() -> None:
    model = make_model(
        [helper.make_node("GlobalAveragePool", ["x"], ["g"]), helper.make_node("Add", ["x", "g"], ["y"])],
        {"x": (1, 8, 16, 16)}, ["y"], {},
    )  # fmt: skip
    kernels, partition_of = make_kernels(graph_of(model), load_rules(), load_device("inf1"))
    stage = Stage("mean", kernels, partition_of, choose_dtypes(kernels), {}, {})
    assert group_of(tuple(kernels), 2, (), set(), stage.in_dram(), partition_of, stage.dtypes) is None


@pytest.mark.parametrize("ahead", Ahead)
def test_images_ahead_of_one_another_keep_the_meaning(ahead: Ahead) -> None:
    graph = graph_of(_hourglass(batch=3, size=16))
    inputs = {"x": np.random.default_rng(1).standard_normal((3, 3, 16, 16))}
    kernels, partition_of = make_kernels(graph, load_rules(), load_device("inf2"))
    stage = Stage("hourglass", kernels, partition_of, choose_dtypes(kernels), {}, {})
    group = group_of(tuple(kernels), 0, (), set(), set(graph.inputs), partition_of, stage.dtypes)
    assert group is not None
    found = unroll(group, 3, frozenset(), ahead)
    assert found is not None
    (y,) = graph.outputs
    wanted = run_kernels(kernels, partition_of, graph, inputs)[y]
    actual = run_kernels(found.kernels, partition_of | found.partition_of, graph, inputs)[y]
    np.testing.assert_allclose(actual, wanted, rtol=1e-9, atol=1e-9)  # float64 both times


@pytest.mark.parametrize("ahead", [Ahead.TURNS, Ahead.TILE])
@pytest.mark.parametrize("tiles", [2, 5, 16])
def test_rows_ahead_of_one_another_keep_the_meaning(tiles: int, ahead: Ahead) -> None:
    graph = graph_of(_hourglass())
    inputs = {"x": np.random.default_rng(1).standard_normal((1, 3, 48, 48))}
    stage = _stage(graph)
    (y,) = graph.outputs
    group = group_of(tuple(stage.kernels), 2, (), set(), stage.in_dram(), stage.partition_of, stage.dtypes)
    assert group is not None
    found = unroll(group, tiles, frozenset({y}), ahead)
    assert found is not None
    wanted = run_kernels(stage.kernels, stage.partition_of, graph, inputs)[y]
    actual = run_kernels(found.kernels, stage.partition_of | found.partition_of, graph, inputs)[y]
    np.testing.assert_allclose(actual, wanted, rtol=1e-9, atol=1e-9)  # float64 both times


def test_in_turns_a_tile_begins_before_the_one_before_it_ends() -> None:
    stage = _stage()
    group = group_of(tuple(stage.kernels), 2, (), set(), stage.in_dram(), stage.partition_of, stage.dtypes)
    assert group is not None
    first, *_, last = (kernel.origins for kernel in stage.kernels if isinstance(kernel.root, Contraction))
    begun = {}
    for ahead in (Ahead.TURNS, Ahead.TILE):
        found = unroll(group, 5, frozenset(), ahead)
        assert found is not None
        sums = [kernel.origins for kernel in found.kernels if isinstance(kernel.root, Contraction)]
        begun[ahead] = sums[: sums.index(last)].count(first)
    assert begun[Ahead.TURNS] == begun[Ahead.TILE] + 1


def test_tiles_take_turns_only_where_the_half_that_begins_what_is_carried_over_finishes_it() -> None:
    """Each layer adds channels to one tensor, and the next one reads all of its rows."""
    graph = graph_of(dense(8, 4, 16))
    (y,) = graph.outputs
    stage = _stage(graph)
    group = group_of(tuple(stage.kernels), 2, (), set(), stage.in_dram(), stage.partition_of, stage.dtypes)
    assert group is not None
    sums = [n for n, kernel in enumerate(stage.kernels) if isinstance(kernel.root, Contraction)]
    found = halves(group, set())
    assert found is not None
    assert [len(half) for half in found] == [sums[2], len(stage.kernels) - sums[2]]
    assert halves(group, {y}) is None


def test_the_first_kernels_of_an_image_run_amid_the_work_on_the_one_before() -> None:
    graph = graph_of(_hourglass(batch=3, size=16))
    with without("choose_routes"):  # images come into their padding by DMA
        kernels, partition_of = make_kernels(graph, load_rules(), load_device("inf2"))
    group = group_of(tuple(kernels), 0, (), set(), set(graph.inputs), partition_of, choose_dtypes(kernels))
    assert group is not None
    for ahead in Ahead:
        unrolled = unroll(group, 3, frozenset(), ahead)
        assert unrolled is not None
        found = _firsts_and_lasts(unrolled.kernels, kernels)
        is_between = all(found[tile + 1][0] < found[tile][1] for tile in range(2))
        assert is_between == (ahead in (Ahead.TURNS, Ahead.EARLY, Ahead.HALF, Ahead.LATE))


def _firsts_and_lasts(found: list[Kernel], kernels: list[Kernel]) -> list[tuple[int, int]]:
    """Where each image's first contraction and its last kernel are."""
    first = next(k.origins[0] for k in kernels if isinstance(k.root, Contraction))
    begins = [n for n, k in enumerate(found) if isinstance(k.root, Contraction) and k.origins[0] == first]
    ends = [n for n, k in enumerate(found) if k.origins[0] == kernels[-1].origins[0] and k.root is not None]
    return list(zip(begins, ends, strict=True))
