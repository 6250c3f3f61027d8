"""Kernels of tiles come in an order in which engines wait less: the same meaning, within memory."""

from dataclasses import replace

import numpy as np

from tests.codegen.graphs import graph_of
from tests.codegen.interpreter import run_kernels
from tests.codegen.test_tiles import _hourglass, _stage
from tvm_neuron.codegen.stage import Stage
from tvm_neuron.codegen.tiles.ahead import Ahead
from tvm_neuron.codegen.tiles.group import group_of
from tvm_neuron.codegen.tiles.reorder import Reordering, reorderable
from tvm_neuron.codegen.tiles.unroll import unroll
from tvm_neuron.codegen.tiles.usage import usage
from tvm_neuron.hw import load_device
from tvm_neuron.schedule.expr import Apply

DEVICE = load_device("inf1")


def _tiled(stage: Stage) -> Stage:
    """The hourglass in tiles of rows."""
    group = group_of(tuple(stage.kernels), 2, (), set(), stage.in_dram(), stage.partition_of, stage.dtypes)
    assert group is not None
    found = unroll(group, 5, frozenset(), Ahead.TURNS)
    assert found is not None
    return replace(
        stage, kernels=found.kernels, partition_of=stage.partition_of | found.partition_of,
        dtypes={**stage.dtypes, **found.dtypes},
    )  # fmt: skip


def test_keeps_the_meaning_and_the_memory() -> None:
    graph = graph_of(_hourglass())
    inputs = {"x": np.random.default_rng(1).standard_normal((1, 3, 48, 48))}
    tiled = _tiled(_stage(graph))
    now = usage(tiled.kernels, tiled.partition_of, tiled.dtypes, tiled.in_dram())
    most = 2 * max(now.alive)
    kernels = Reordering(tiled.kernels, range(len(tiled.kernels)), now, DEVICE).reordered(most, 24)
    assert sorted(k.out.name for k in kernels) == sorted(k.out.name for k in tiled.kernels)
    assert [k.out for k in kernels] != [k.out for k in tiled.kernels]
    assert any(isinstance(k.expr, Apply) and k.expr.op == "copy" for k in kernels)  # ACT takes a part of the copies
    assert max(usage(kernels, tiled.partition_of, tiled.dtypes, tiled.in_dram()).alive) <= most
    (y,) = graph.outputs
    wanted = run_kernels(tiled.kernels, tiled.partition_of, graph, inputs)[y]
    actual = run_kernels(kernels, tiled.partition_of, graph, inputs)[y]
    np.testing.assert_allclose(actual, wanted, rtol=1e-9, atol=1e-9)  # float64 both times


def test_weights_that_do_not_stay_keep_the_order() -> None:
    stage = _stage()
    tiled, untiled = _tiled(stage), frozenset(stage.kernels)
    assert reorderable(tiled.kernels, untiled, tiled.partition_of, 10_000) == [range(len(tiled.kernels))]
    assert not reorderable(tiled.kernels, untiled, tiled.partition_of, 100)
    assert not reorderable(stage.kernels, untiled, stage.partition_of, 10_000)  # no tiles
