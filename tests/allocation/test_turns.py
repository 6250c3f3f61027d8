"""What lies in a memory by turns: what is needed is in, within the room, and what is needed last goes."""

import random

import pytest

from tvm_neuron.allocation.turns import Turns


@pytest.mark.parametrize("seed", range(20))
def test_what_is_needed_is_in_and_fits(seed: int) -> None:
    draw = random.Random(seed)
    sizes = {name: draw.randint(1, 9) for name in range(12)}
    steps = [set(draw.sample(range(12), draw.randint(1, 3))) for _ in range(60)]
    uses = {name: [at for at, needed in enumerate(steps) if name in needed] for name in sizes}
    room = draw.randint(27, 60)  # three of the largest, at least

    def after(name: int, at: int) -> int:
        return next(step for step in uses[name] if step > at)

    turns, inside = Turns(uses, sizes, room, lambda name: sizes[name]), set[int]()
    for at, needed in enumerate(steps):
        for name, comes in turns.at(at, needed):
            assert (name in inside) != comes
            inside ^= {name}
            if not comes:
                assert all(after(other, at) <= after(name, at) for other in inside - needed)
        assert needed <= inside
        assert sum(sizes[name] for name in inside) <= room
        turns.done(needed)
        inside -= {name for name in needed if uses[name][-1] == at}


def test_what_costs_much_to_move_stays() -> None:
    uses = {"wide": [0, 4], "narrow": [1, 5], "new": [2]}
    for price, goes in (({"wide": 100, "narrow": 1}, "narrow"), ({"wide": 1, "narrow": 1}, "narrow")):
        turns = Turns(uses, dict.fromkeys(uses, 1), 2, price.__getitem__)
        events = [list(turns.at(step, {name})) for step, name in enumerate(("wide", "narrow", "new"))]
        assert events == [[("wide", True)], [("narrow", True)], [(goes, False), ("new", True)]]
    turns = Turns(uses, dict.fromkeys(uses, 1), 2, {"wide": 1, "narrow": 100}.__getitem__)
    last = [list(turns.at(step, {name})) for step, name in enumerate(("wide", "narrow", "new"))][-1]
    assert last[0] == ("wide", False)


def test_more_than_there_is_room_for_at_once() -> None:
    turns = Turns({"a": [0], "b": [0]}, {"a": 3, "b": 3}, 4, lambda _: 1)
    assert list(turns.at(0, {"a", "b"})) == [("a", True), ("b", True)]
