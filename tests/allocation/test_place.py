"""place: no two buffers that live at one step share a byte, and little is wasted."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tvm_neuron.allocation.place import ORDERS, REPAIRS, Buffer, peak_bytes, place, tightest

BUFFERS = st.lists(st.tuples(st.integers(1, 40), st.integers(0, 12), st.integers(0, 6)), min_size=1, max_size=24).map(
    lambda rows: [Buffer(i, size, first, first + length) for i, (size, first, length) in enumerate(rows)]
)


def alive_at(buffers: list[Buffer], step: int) -> list[Buffer]:
    return [buffer for buffer in buffers if buffer.first <= step <= buffer.last]


@given(BUFFERS)
def test_live_buffers_do_not_overlap(buffers: list[Buffer]) -> None:
    offsets, failed = place(buffers, capacity=10_000)
    assert failed is None
    for step in range(20):
        taken = [byte for b in alive_at(buffers, step) for byte in range(offsets[b.name], offsets[b.name] + b.size)]
        assert len(taken) == len(set(taken))


@given(BUFFERS)
def test_peak_is_the_most_that_lives_at_once(buffers: list[Buffer]) -> None:
    assert peak_bytes(buffers) == max(sum(b.size for b in alive_at(buffers, step)) for step in range(20))


@given(BUFFERS, st.integers(1, 200))
def test_all_fit_or_the_one_that_does_not_is_named(buffers: list[Buffer], capacity: int) -> None:
    offsets, failed = place(buffers, capacity)
    by_name = {buffer.name: buffer for buffer in buffers}
    assert all(at >= 0 and at + by_name[name].size <= capacity for name, at in offsets.items())
    assert (failed is None) == (len(offsets) == len(buffers))
    if failed is not None:  # no gap was left that it could have taken
        beside = [b for b in buffers if b.name in offsets and b.overlaps(failed)]
        others = [(offsets[b.name], offsets[b.name] + b.size) for b in beside]
        for at in range(capacity - failed.size + 1):
            assert any(start < at + failed.size and at < end for start, end in others)


def test_what_never_lives_together_shares_its_place() -> None:
    offsets, failed = place([Buffer("a", 64, 0, 1), Buffer("b", 64, 2, 3), Buffer("c", 64, 1, 2)], capacity=128)
    assert failed is None
    assert offsets["a"] == offsets["b"] != offsets["c"]


def test_what_found_no_room_in_any_order_is_placed_first() -> None:
    """In no order of size, life or time all fit; with one placed before all others, they do."""
    lives = [(4, 1, 4), (3, 1, 1), (3, 0, 1), (5, 3, 6)]
    buffers = [Buffer(n, *life) for n, life in enumerate(lives)]
    offsets, failed = place(buffers, capacity=peak_bytes(buffers))
    assert failed is None
    assert len(offsets) == len(buffers)


def in_turn(buffers: list[Buffer], capacity: int) -> tuple[dict[object, int], Buffer | None]:
    """Each at the lowest byte from which on all of its bytes are free."""
    offsets: dict[object, int] = {}
    for buffer in buffers:
        taken = {
            at for b in buffers if b.name in offsets and b.overlaps(buffer)
            for at in range(offsets[b.name], offsets[b.name] + b.size)
        }  # fmt: skip
        at = next(at for at in range(capacity + 1) if taken.isdisjoint(range(at, min(at + buffer.size, capacity + 1))))
        if at + buffer.size > capacity:
            return offsets, buffer
        offsets[buffer.name] = at
    return offsets, None


def from_the_start(buffers: list[Buffer], capacity: int) -> tuple[dict[object, int], Buffer | None]:
    """What `place` promises, with all buffers placed anew for each that is put first."""
    first, *others = [in_turn(sorted(buffers, key=key), capacity) for key in ORDERS]
    for found in (first, *others):
        if found[1] is None:
            return found
    for key in ORDERS:
        order = sorted(buffers, key=key)
        for _ in range(1 + REPAIRS):
            offsets, failed = in_turn(order, capacity)
            if failed is None:
                return offsets, None
            order.remove(failed)
            order.insert(0, failed)
    return first


@pytest.mark.parametrize("seed", range(4))
def test_what_is_put_first_leaves_all_where_placing_them_anew_would(seed: int) -> None:
    rng = random.Random(seed)
    repaired = 0
    for _ in range(250):
        rows = [(rng.randint(1, 6), rng.randint(0, 12), rng.randint(0, 6)) for _ in range(rng.randint(6, 14))]
        buffers = [Buffer(i, size, first, first + length) for i, (size, first, length) in enumerate(rows)]
        capacity = peak_bytes(buffers) + rng.randint(-1, 0)
        assert place(buffers, capacity) == from_the_start(buffers, capacity)
        repaired += capacity >= peak_bytes(buffers) and in_turn(sorted(buffers, key=ORDERS[0]), capacity)[1] is not None
    assert repaired > 10


@given(BUFFERS)
def test_tightest_is_apart_and_ends_no_higher(buffers: list[Buffer]) -> None:
    offsets, _ = place(buffers, capacity=10_000)
    end = max(offsets[b.name] + b.size for b in buffers)
    every = list(tightest(buffers, end))
    assert every
    for found in every:
        assert peak_bytes(buffers) <= max(found[b.name] + b.size for b in buffers) <= end
        for step in range(20):
            taken = [byte for b in alive_at(buffers, step) for byte in range(found[b.name], found[b.name] + b.size)]
            assert len(taken) == len(set(taken))


def test_tightest_has_what_lives_longest_at_the_bottom() -> None:
    buffers = [Buffer("large", 64, 0, 1), Buffer("long", 16, 0, 9), Buffer("late", 48, 8, 9)]
    assert place(buffers, 1000)[0] == {"large": 0, "long": 64, "late": 0}
    assert next(tightest(buffers, 1000)) == {"long": 0, "large": 16, "late": 16}


def test_tightest_finds_less_than_placing_with_room_to_spare_does() -> None:
    rng = random.Random(3)
    saved = 0
    for _ in range(50):
        rows = [(64 * rng.randint(1, 6), rng.randint(0, 12), rng.randint(0, 6)) for _ in range(12)]
        buffers = [Buffer(i, size, first, first + length) for i, (size, first, length) in enumerate(rows)]
        offsets, _ = place(buffers, 64 * 100)
        least = min(max(found[b.name] + b.size for b in buffers) for found in tightest(buffers, 64 * 100))
        saved += least < max(offsets[b.name] + b.size for b in buffers)
    assert saved > 5


def test_tightest_is_nothing_where_they_find_no_room() -> None:
    assert not list(tightest([Buffer("a", 64, 0, 1), Buffer("b", 64, 1, 2)], 64))
    assert not list(tightest([], 64))
