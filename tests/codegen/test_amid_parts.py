"""run_amid_parts: heads run between parts of layers that wait for their weights; outputs are the same."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from tests.codegen.graphs import graph_of
from tests.codegen.interpreter import run_kernels
from tests.codegen.test_amid_weights import detector
from tests.models.agreement import Case, random_inputs, relative_error
from tests.stages.networks import compile_model, run, small_network
from tests.stages.test_small_memory import shrunk
from tvm_neuron.codegen import compile_stage
from tvm_neuron.codegen.kernels.storage_dtypes import choose_dtypes
from tvm_neuron.codegen.overlap.amid_parts import _Order, run_amid_parts
from tvm_neuron.codegen.overlap.amid_weights import run_amid_weights
from tvm_neuron.codegen.overlap.part import Part
from tvm_neuron.codegen.simplify import make_kernels
from tvm_neuron.codegen.stage import Stage
from tvm_neuron.codegen.tiles.copies import copy_of
from tvm_neuron.codegen.tiles.restrict import restrict
from tvm_neuron.hw import load_device
from tvm_neuron.program import Origin
from tvm_neuron.schedule.graph import Graph
from tvm_neuron.schedule.kernel import Contraction
from tvm_neuron.schedule.rule import load_rules
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.sim import time_program

INF1 = load_device("inf1")
DEEP = 512  # channels of a layer that waits for its weights


def stage_of(model: onnx.ModelProto) -> tuple[Graph, Stage]:
    graph = graph_of(model)
    kernels, partition_of = make_kernels(graph, load_rules(), INF1)
    stage = Stage("detector", kernels, partition_of, choose_dtypes(kernels), {}, {})
    return graph, replace(stage, kernels=run_amid_weights(stage, INF1))


def names(stage: Stage) -> list[str]:
    return [kernel.origins[0].name for kernel in stage.kernels if isinstance(kernel.root, Contraction)]


def test_a_head_comes_between_parts_of_layers() -> None:
    """It was behind the second of them, since it takes longer than memory holds weights ahead."""
    model = detector(DEEP)
    graph, stage = stage_of(model)
    found = run_amid_parts(stage, INF1)
    order = names(found)
    assert names(stage) == ["first", "down", "deep", "head", "boxes", "last"]
    assert [name for name in order if name not in ("head", "boxes")] == ["first", *4 * ["down"], *8 * ["deep"], "last"]
    assert [name for name in order if name in ("head", "boxes")] == ["head", "boxes"]
    assert order.index("down") < order.index("boxes") < len(order) - 1 - order[::-1].index("deep")
    inputs = random_inputs(model)
    wanted = onnxruntime.InferenceSession(model.SerializeToString()).run(None, inputs)
    actual = run_kernels(found.kernels, found.partition_of, graph, inputs)
    for output, exact in zip(graph.outputs, wanted, strict=True):
        np.testing.assert_allclose(actual[output], exact, rtol=1e-4, atol=1e-4)  # ONNX Runtime's float32


def test_all_stays_where_no_layer_waits_for_weights() -> None:
    _, stage = stage_of(detector(64))
    assert run_amid_parts(stage, INF1) is stage


def test_all_stays_without_heads() -> None:
    _, stage = stage_of(small_network())
    slow = replace(INF1, dram_bytes_per_second=10**8)
    assert run_amid_parts(stage, slow) is stage


def test_tiles_with_the_same_weights_are_not_cut() -> None:
    """They would load them for each part."""
    _, stage = stage_of(detector(DEEP))
    at, deep = next((n, k) for n, k in enumerate(stage.kernels) if k.origins[0].name == "deep" and k.root)
    rows = deep.free[0]
    tiles = [restrict(deep, rows, low, high, {}) for low, high in ((0, 4), (4, rows.extent))]
    found = run_amid_parts(replace(stage, kernels=[*stage.kernels[:at], *tiles, *stage.kernels[at + 1 :]]), INF1)
    assert [kernel for kernel in found.kernels if kernel in tiles] == tiles
    assert names(found).count("deep") == 2


def parts() -> Iterator[Part]:
    """What DMA stores, other kernels of a head, and what waits for weights; 10 us on the array each."""
    made, out = Tensor("made", (8, 8), "float32"), Tensor("out", (8, 8), "float32", kind="output")
    for number, by_dma in enumerate([False, True, False, False, False, False]):
        sides = (made, [0, 0]), (out if by_dma else made, [0, 0])
        kernel = copy_of(Origin("", ""), (8, 8), 0, *sides, by_dma=by_dma)
        work = {"pe": 0 if by_dma else 10_000_000, "act": 0, "pool": 0}
        yield Part(kernel, number, 0, work, load_ps={1: 25_000_000, 4: 10**9, 5: 10**9}.get(number, 0))


def test_what_is_stored_keeps_its_memory_until_it_likely_is() -> None:
    first, store, second, third, *others = parts()
    stage = Stage("", [], {}, {}, {}, {})
    store.after = [first]
    assert [*_Order(stage, INF1).run([first, store, second, third], others)][:4] == [first, second, third, store]
    second.after = [store]  # it writes what is stored
    assert [*_Order(stage, INF1).run([first, store, second, third], others)][:4] == [first, store, second, third]


def test_what_overwrites_what_a_head_reads_comes_after_it() -> None:
    first, store, second, third, *others = parts()
    others[0].after = [second]
    others[0].load_ps = 0  # it could begin at once
    found = [*_Order(Stage("", [], {}, {}, {}, {}), INF1).run([first, store, second, third], others)]
    assert found.index(second) < found.index(others[0])


@pytest.mark.parametrize("mode", ["nest", "strict"])
def test_compiled_outputs_are_the_same(mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With little SBUF the head runs in tiles, and all takes less time than one after the other."""
    model = detector(DEEP, 56, wide=512)
    target = shrunk(tmp_path, "inf1", 48)
    neff = compile_model(model, target)
    case = Case(model, random_inputs(model))
    found = run(neff, case.inputs, mode)
    for name, exact in case.exact.items():
        assert relative_error(found[name], exact) < case.bounds[name]
    monkeypatch.setattr(compile_stage, "run_amid_parts", lambda stage, _: stage)
    before = compile_model(model, target)
    assert time_program(neff.program, neff.device).total_ps < time_program(before.program, before.device).total_ps
    monkeypatch.undo()
    monkeypatch.setattr(compile_stage, "place_within", lambda *_: None)  # no room for that
    assert compile_model(model, target).program == before.program
