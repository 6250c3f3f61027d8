"""finish_early: what only outputs need comes right behind what it needs, and the outputs are the same."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from tests.codegen.detectors import inputs_of, scores
from tests.codegen.graphs import graph_of
from tests.codegen.interpreter import run_kernels
from tests.models.agreement import Case
from tests.stages.networks import compile_model, run, small_network
from tests.stages.test_small_memory import shrunk
from tvm_neuron.codegen.overlap.finish import finish_early
from tvm_neuron.codegen.simplify import make_kernels
from tvm_neuron.hw import load_device
from tvm_neuron.schedule.kernel import Contraction
from tvm_neuron.schedule.rule import load_rules

MODEL = scores((12, 16), (6, 8), (3, 4))
SLOW_BYTES_PER_SECOND = 10**8
QUICK = load_device("inf1")
SLOW = replace(QUICK, dram_bytes_per_second=SLOW_BYTES_PER_SECOND)  # layers wait for their weights


def test_a_level_is_finished_before_the_next_one_begins() -> None:
    graph = graph_of(MODEL)
    kernels, partition_of = make_kernels(graph, load_rules(), SLOW)
    found = finish_early(kernels, partition_of, SLOW)
    assert set(found) == set(kernels)
    assert len(found) == len(kernels)
    order = ["conv" if isinstance(k.root, Contraction) else k.out.name for k in found]
    assert [name for name in order if name in ("conv", "y", "centres")] == 3 * ["conv", "y", "centres"]
    inputs = inputs_of(MODEL)
    wanted = onnxruntime.InferenceSession(MODEL.SerializeToString()).run(None, inputs)
    actual = run_kernels(found, partition_of, graph, inputs)
    for output, exact in zip(graph.outputs, wanted, strict=True):
        np.testing.assert_allclose(actual[output], exact, rtol=1e-4, atol=1e-5)  # ONNX Runtime's float32


def test_scores_are_stored_before_what_does_not_need_them() -> None:
    kernels, partition_of = make_kernels(graph_of(MODEL), load_rules(), SLOW)
    found = finish_early(kernels, partition_of, SLOW)
    before = [found[number - 1] for number, kernel in enumerate(found) if kernel.out.name == "y"]
    stores = [kernel for kernel in found if kernel.out.name == "y"]
    assert [kernel.out in store.sources() for kernel, store in zip(before, stores, strict=True)][:2] == [True, True]


def test_levels_keep_their_order_where_no_layer_waits_for_weights() -> None:
    quick = replace(QUICK, dram_bytes_per_second=10**14)
    kernels, partition_of = make_kernels(graph_of(MODEL), load_rules(), quick)
    assert finish_early(kernels, partition_of, quick) == kernels


def test_kernels_that_need_the_last_contraction_keep_their_order() -> None:
    kernels, partition_of = make_kernels(graph_of(small_network()), load_rules(), SLOW)
    assert finish_early(kernels, partition_of, SLOW) == kernels


@pytest.mark.parametrize(("sbuf_kib", "spilled"), [(192, 0), (40, 0)])
@pytest.mark.parametrize("mode", ["nest", "strict"])
def test_compiled_outputs_agree_with_onnxruntime(mode: str, sbuf_kib: int, spilled: int, tmp_path: Path) -> None:
    """With little SBUF in tiles, without a way through DRAM for scores."""
    model = scores((40, 64), (20, 32), (5, 8))
    target = shrunk(tmp_path, "inf1", sbuf_kib)
    path = Path(target["device"])
    raw = json.loads(path.read_text())
    raw["dram_bytes_per_second"]["value"] = SLOW_BYTES_PER_SECOND
    path.write_text(json.dumps(raw))
    case = Case(model, inputs_of(model))
    made = compile_model(model, target)
    assert made.memory["spill"] == spilled
    found = run(made, case.inputs, mode)
    for name, exact in case.exact.items():
        np.testing.assert_allclose(found[name], exact, atol=0.02)  # bf16: numbers of up to 4, rounded
