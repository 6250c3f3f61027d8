"""Among several orders and places the clock chooses; -O1, and what has no time left, takes the first."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.codegen.graphs import graph_of
from tests.codegen.test_tiles import _hourglass, _stage
from tvm_neuron.codegen import choose as module
from tvm_neuron.codegen.choose import choose
from tvm_neuron.codegen.options import BuildOptions
from tvm_neuron.codegen.residents import Room, place_stage
from tvm_neuron.codegen.stage import Stage
from tvm_neuron.hw import load_device

DEVICE = load_device("inf1")
STAGE = _stage(graph_of(_hourglass()))
ROOM = place_stage(STAGE, DEVICE, keep_weights=False)
NAMES = ("first", "quick", "slow")
COSTS = {"first": 900, "quick": 700, "slow": 1200}


def chosen(monkeypatch: pytest.MonkeyPatch, options: BuildOptions, names: tuple[str, ...] = NAMES) -> tuple[str, list]:
    """The name of the stage that is chosen, and of those of which the clock was asked."""
    timed: list[str] = []

    def total_ps(made: module.Made, _device: object) -> int:
        timed.append(made.stage.name)
        return COSTS[made.stage.name]

    monkeypatch.setattr(module, "_total_ps", total_ps)
    candidates = [(replace(STAGE, name=name), ROOM) for name in names]
    return choose([candidates], DEVICE, options, keep_weights=False)[0].stage.name, timed


def test_the_quickest_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen(monkeypatch, BuildOptions()) == ("quick", ["first", "quick", "slow"])
    assert chosen(monkeypatch, BuildOptions(), ("first", "slow"))[0] == "first"


def test_only_the_way_that_begins_best_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    costs = {"block by block": 900, "by price": 800, "best": 500, "better": 700}
    timed: list[str] = []

    def total_ps(made: module.Made, _device: object) -> int:
        timed.append(made.stage.name)
        return costs[made.stage.name]

    monkeypatch.setattr(module, "_total_ps", total_ps)
    names = (("block by block", "best"), (), ("by price", "better"))
    ways = [[(replace(STAGE, name=name), ROOM) for name in each] for each in names]
    made, way = choose(ways, DEVICE, BuildOptions(), keep_weights=False)
    assert (made.stage.name, way) == ("better", 2)
    assert timed == ["block by block", "by price", "better"]


def test_what_is_alone_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen(monkeypatch, BuildOptions(), ("slow",)) == ("slow", [])


@pytest.mark.parametrize("options", [BuildOptions(optlevel=1), BuildOptions(time_budget_seconds=1e-6).begun()])
def test_the_first_is_taken_where_nothing_may_be_tried(
    options: BuildOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert chosen(monkeypatch, options) == ("first", [])


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
        return module.Made(stage, room, None, None)  # type: ignore[arg-type]

    def total_ps(made: module.Made, _device: object) -> int:
        passes(0.5)
        return COSTS[made.stage.name]

    asked: list[float] = []
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    monkeypatch.setattr(module, "_made", made)
    monkeypatch.setattr(module, "_total_ps", total_ps)
    assert choose([candidates()], DEVICE, Options(), keep_weights=False)[0].stage.name == "quick"
    assert asked == [1, 2 + 0.5 + 1 + 0.5, 6 + 1 + 0.5, 6 + 1 + 0.5]


def test_the_clock_is_that_of_the_program() -> None:
    made, way = choose([[(STAGE, ROOM)]], DEVICE, BuildOptions(), keep_weights=False)
    assert module._total_ps(made, DEVICE) > 0
    assert (made.stage, way) == (STAGE, 0)
