"""Tensors in slices of channels: the same numbers, sums in float32, and far less of SBUF at once."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tvm

from tests.codegen.graphs import graph_of
from tests.codegen.interpreter import run_kernels
from tests.codegen.test_encoders import run
from tests.codegen.transformers import Encoder
from tests.stages.test_small_memory import shrunk
from tvm_neuron.codegen.kernels.storage_dtypes import choose_dtypes
from tvm_neuron.codegen.overlap import depth
from tvm_neuron.codegen.overlap.defer import defer
from tvm_neuron.codegen.overlap.depth import cut_depth
from tvm_neuron.codegen.overlap.slices import slice_tensors
from tvm_neuron.codegen.simplify import make_kernels
from tvm_neuron.codegen.tiles.usage import usage
from tvm_neuron.hw import load_device
from tvm_neuron.schedule.expr import Load
from tvm_neuron.schedule.graph import Graph
from tvm_neuron.schedule.kernel import Contraction, Kernel
from tvm_neuron.schedule.rule import load_rules
from tvm_neuron.schedule.tensor import Tensor

ENCODER = Encoder(256, 8, 64, layers=2, batch=4)
LITTLE = replace(load_device("inf1"), sbuf_bytes_per_partition=30 << 10)  # attention in groups of four heads
SLICE = 256  # channels, of 1024
Kernels = tuple[Graph, list[Kernel], dict[Tensor, int], dict[Tensor, str]]


@pytest.fixture(autouse=True)
def _short_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(depth, "SLICE", SLICE)


@pytest.fixture(name="kernels")
def _kernels() -> Kernels:
    graph = graph_of(ENCODER.model())
    kernels, partition_of = make_kernels(graph, load_rules(), LITTLE)
    return graph, kernels, partition_of, choose_dtypes(kernels)


def _sliced(kernels: Kernels) -> list[Kernel]:
    _, whole, partition_of, dtypes = kernels
    found, late = slice_tensors(cut_depth(whole, partition_of, dtypes), partition_of, dtypes)
    return defer(found, late, partition_of)


@pytest.mark.slow
def test_same_meaning(kernels: Kernels) -> None:
    """In float64, up to the order of sums."""
    graph, whole, partition_of, _ = kernels
    before, after = (run_kernels(k, partition_of, graph, ENCODER.inputs()) for k in (whole, _sliced(kernels)))
    (output,) = graph.outputs
    np.testing.assert_allclose(after[output], before[output], rtol=1e-9, atol=1e-11)


def test_sums_are_added_up_in_float32(kernels: Kernels) -> None:
    """The residual comes with the first of them, so that no other part needs it."""
    _, whole, partition_of, dtypes = kernels
    chains = [k for k in cut_depth(whole, partition_of, dtypes) if ".sums" in str(k.expr) or ".sums" in k.out.name]
    assert len(chains) == 2 * 4 * 256 // SLICE
    first, last = chains[:2]
    assert isinstance(first.root, Contraction)
    assert first.root.weights.shape[0] == SLICE
    assert dtypes[first.out] == "float32"
    assert len(list(first.operand_loads())) == 1
    assert [load.tensor for load in last.operand_loads()] == [first.out]
    assert all(isinstance(load, Load) for load in last.operand_loads())


def test_slices_take_less_memory_at_once(kernels: Kernels) -> None:
    """Heads come one group after the other, with their own queries, keys and values."""
    _, whole, partition_of, dtypes = kernels
    found = _sliced(kernels)

    def peak(kernels: list[Kernel]) -> int:
        in_dram = {t for kernel in kernels for t in kernel.tensors if t.kind != "temp"}
        return max(usage(kernels, partition_of, dtypes, in_dram).alive)

    assert peak(found) < 0.8 * peak(whole)
    assert {k.channel.extent for k in found if isinstance(k.root, Contraction) and k.out.name.endswith("from0")} >= {
        128
    }


@pytest.mark.slow
@pytest.mark.parametrize("size", [(256, 8, 64, 4), (256, 4, 128, 3)])
def test_in_little_memory(size: tuple[int, int, int, int], tmp_path: Path) -> None:
    """On the hardware model, in each of its modes; all weights are loaded once, and nothing lies in DRAM meanwhile."""
    hidden, heads, rows, batch = size
    report = run(Encoder(hidden, heads, rows, batch=batch), tvm.target.Target(shrunk(tmp_path, "inf1", 30)))
    assert report.spill_bytes == 0
    assert report.dram_bytes_by_kind["weight"] == pytest.approx(12 * hidden * hidden * 2, rel=0.1)
