"""A stage in tiles in several orders and places: the same kernels and meaning, within memory."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from tests.codegen.graphs import graph_of
from tests.codegen.interpreter import run_kernels
from tests.codegen.test_reorder import DEVICE, _tiled
from tests.codegen.test_tiles import _hourglass, _stage
from tvm_neuron.codegen.residents import place_stage, place_within
from tvm_neuron.codegen.tiles import tries as module
from tvm_neuron.codegen.tiles.tries import tries
from tvm_neuron.errors import CompileError
from tvm_neuron.schedule.expr import Apply

GRAPH = graph_of(_hourglass())
UNTILED = _stage(GRAPH)
TILED = _tiled(UNTILED)
ROOM = place_stage(TILED, DEVICE, keep_weights=False)
KERNELS = frozenset(UNTILED.kernels)


@pytest.mark.slow
def test_each_is_of_the_same_kernels_within_memory() -> None:
    found = list(tries(TILED, ROOM, KERNELS, DEVICE, is_thorough=False))
    assert found
    inputs = {"x": np.random.default_rng(1).standard_normal((1, 3, 48, 48))}
    (y,) = GRAPH.outputs
    wanted = run_kernels(UNTILED.kernels, UNTILED.partition_of, GRAPH, inputs)[y]
    for stage, room in found:
        assert [k.out for k in stage.kernels] != [k.out for k in TILED.kernels]
        actual = run_kernels(stage.kernels, stage.partition_of, GRAPH, inputs)[y]
        np.testing.assert_allclose(actual, wanted, rtol=1e-9, atol=1e-9)  # float64 both times
        assert room.plan.spilled_bytes <= ROOM.plan.spilled_bytes
        assert room.plan.extent_bytes <= room.zones.tensors_bytes
        for step in range(len(stage.kernels)):
            alive = sorted(
                (room.plan.offsets[b.name], room.plan.offsets[b.name] + b.size)
                for b in room.plan.buffers if b.first <= step <= b.last
            )  # fmt: skip
            assert all(end <= start for (_, end), (start, _) in pairwise(alive))


def test_tensors_in_the_place_of_others_go_where_these_go() -> None:
    for _, room in tries(TILED, ROOM, KERNELS, DEVICE, is_thorough=True):
        assert all(room.plan.offsets[tensor] == room.plan.offsets[to] for tensor, to in room.plan.owners.items())


def test_more_are_tried_if_time_does_not_count() -> None:
    few, all_ = (list(tries(TILED, ROOM, KERNELS, DEVICE, is_thorough)) for is_thorough in (False, True))
    assert 0 < len(few) < len(all_)
    assert any(stage.kernels == TILED.kernels for stage, _ in all_)  # in other places alone


def test_no_order_is_tried_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies that ACT makes are new kernels each time."""
    monkeypatch.setattr(module, "_AHEAD", (module._AHEAD[0],) * 2)
    ((stage, _),) = tries(TILED, ROOM, KERNELS, DEVICE, is_thorough=False)
    assert any(isinstance(k.expr, Apply) and k.expr.op == "copy" for k in stage.kernels)


def test_what_is_not_in_tiles_has_no_other_order() -> None:
    room = place_stage(UNTILED, DEVICE, keep_weights=False)
    assert list(tries(UNTILED, room, KERNELS, DEVICE, is_thorough=False)) == [(UNTILED, room)]


def test_what_does_not_fit_is_no_candidate() -> None:
    small = replace(DEVICE, sbuf_bytes_per_partition=4 * 1024)
    with pytest.raises(CompileError):
        place_stage(TILED, small, keep_weights=False)
    assert place_within(TILED, small, 2**40) is None
