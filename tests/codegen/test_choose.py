"""Among several orders and places the clock chooses; -O1, and what has no time left, takes the first."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import SimpleNamespace

import pytest

from tests.codegen.graphs import graph_of
from tests.codegen.test_tiles import _hourglass, _stage
from tvm_neuron.codegen import choose as module
from tvm_neuron.codegen.choose import choose
from tvm_neuron.codegen.options import BuildOptions
from tvm_neuron.codegen.residents import Room, place_stage
from tvm_neuron.codegen.stage import Stage
from tvm_neuron.codegen.steps import without
from tvm_neuron.hw import load_device
from tvm_neuron.sim import time_program

DEVICE = load_device("inf1")
STAGE = _stage(graph_of(_hourglass()))
ROOM = place_stage(STAGE, DEVICE, keep_weights=False)
NAMES = ("first", "quick", "slow")
COSTS = {"first": 900, "quick": 700, "slow": 1200}


def with_costs(monkeypatch: pytest.MonkeyPatch, costs: Mapping[str, int], joined_ps: int = 0) -> list[str]:
    """Programs take this, with chunks apart 100 less; the list gets the names of the stages that are made."""
    names: list[str] = []

    def made(stage: Stage, room: Room, *_others: object, **_named: object) -> module.Made:
        names.append(stage.name)
        emitted = SimpleNamespace(joined_ps=0 if stage.chunks_apart else joined_ps, nodes=())
        return module.Made(stage, room, emitted, None, costs[stage.name] - 100 * stage.chunks_apart)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "_made", made)
    monkeypatch.setattr(module, "_with_transfers_arranged", lambda made, _device: made)
    monkeypatch.setattr(module, "list_schedules", lambda *_: iter(()))
    monkeypatch.setattr(module, "with_diagonals", lambda *_: iter(()))
    monkeypatch.setattr(module, "with_exact_waits", lambda emitted, _device: emitted)
    return names


def chosen(monkeypatch: pytest.MonkeyPatch, options: BuildOptions, names: tuple[str, ...] = NAMES) -> tuple[str, list]:
    """The name of the stage that is chosen, and of those that are made."""
    tried = with_costs(monkeypatch, COSTS)
    candidates = [(replace(STAGE, name=name), ROOM) for name in names]
    return choose([candidates], DEVICE, options, keep_weights=False)[0].stage.name, tried


def test_the_quickest_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen(monkeypatch, BuildOptions()) == ("quick", ["first", "quick", "slow"])
    assert chosen(monkeypatch, BuildOptions(), ("first", "slow"))[0] == "first"


@pytest.mark.parametrize(("orders", "expected"), [(("quick", "slow"), "quick"), (("slow",), "first"), ((), "first")])
def test_another_order_is_taken_where_it_is_quicker(
    orders: tuple[str, ...], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = with_costs(monkeypatch, COSTS)
    monkeypatch.setattr(module, "list_schedules", lambda *_: (replace(STAGE, name=name) for name in orders))
    made, _ = choose([[(replace(STAGE, name="first"), ROOM)]], DEVICE, BuildOptions(), keep_weights=False)
    assert (made.stage.name, tried) == (expected, ["first", *orders])


@pytest.mark.parametrize(("joined_ps", "expected"), [(5, (["first", "first"], 800)), (4, (["first"], 900))])
def test_chunks_are_apart_where_enough_is_joined_and_it_is_quicker(
    joined_ps: int, expected: tuple[list[str], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = with_costs(monkeypatch, COSTS, joined_ps)
    made, _ = choose([[(replace(STAGE, name="first"), ROOM)]], DEVICE, BuildOptions(), keep_weights=False)
    assert (tried, made.total_ps) == expected


def test_only_the_way_that_begins_best_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = with_costs(monkeypatch, {"block by block": 900, "by price": 800, "best": 500, "better": 700})
    names = (("block by block", "best"), (), ("by price", "better"))
    ways = [[(replace(STAGE, name=name), ROOM) for name in each] for each in names]
    made, way = choose(ways, DEVICE, BuildOptions(), keep_weights=False)
    assert (made.stage.name, way) == ("better", 2)
    assert tried == ["block by block", "by price", "better"]


@pytest.mark.parametrize("options", [BuildOptions(optlevel=1), BuildOptions(time_budget_seconds=1e-6).begun()])
def test_the_first_is_taken_where_nothing_may_be_tried(options: BuildOptions, monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen(monkeypatch, options) == ("first", ["first"])


def test_a_try_is_expected_to_take_as_long_as_the_longest_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """That is to place it, make it and time it; not what comes before all of them."""
    now = 0.0

    def passes(seconds: float) -> None:
        nonlocal now
        now += seconds

    def candidates() -> Iterator[tuple[Stage, Room]]:
        for name, seconds in (("first", 50.0), ("quick", 2.0), ("slow", 6.0), ("quick", 1.0)):
            passes(seconds)
            yield replace(STAGE, name=name), ROOM

    class Options(BuildOptions):
        def has_time(self, seconds: float = 0.0) -> bool:
            asked.append(seconds)
            return len(asked) < 4

    def made(stage: Stage, room: Room, *_others: object) -> module.Made:
        passes(1)
        return module.Made(stage, room, None, None, COSTS[stage.name])  # type: ignore[arg-type]

    asked: list[float] = []
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    monkeypatch.setattr(module, "_made", made)
    monkeypatch.setattr(module, "_with_transfers_arranged", lambda made, _device: made)
    monkeypatch.setattr(module, "_listed", lambda *_: [])
    assert choose([candidates()], DEVICE, Options(), keep_weights=False)[0].stage.name == "quick"
    assert asked == [1, 2 + 1, 6 + 1, 6 + 1, 6 + 1]  # the last for weights that come together


def test_the_clock_is_that_of_the_program() -> None:
    with without(module.LISTED.name):
        made, way = choose([[(STAGE, ROOM)]], DEVICE, BuildOptions(), keep_weights=False)
    assert made.total_ps == time_program(made.program, DEVICE).total_ps > 0
    assert (made.stage, way) == (STAGE, 0)
