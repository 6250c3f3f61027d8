"""WeightsMemory: what tensors leave of SBUF is handed out to weights, the part that was in use longest ago first."""

from tvm_neuron.allocation.layouts import ALIGNMENT_BYTES as UNIT
from tvm_neuron.allocation.memory_plan import MemoryPlan
from tvm_neuron.allocation.place import Buffer
from tvm_neuron.codegen.emit.weights_memory import WeightsMemory

ABOVE = 8  # units that tensors take at most


def memory(size: int, *tensors: tuple[int, int, int, int], in_turns_until: int = 0) -> WeightsMemory:
    """With `size` units above tensors, each (offset, size, first step, last step) in units and steps."""
    buffers = [Buffer(n, length * UNIT, first, last) for n, (_, length, first, last) in enumerate(tensors)]
    plan = MemoryPlan({}, {}, set(), {n: at * UNIT for n, (at, *_) in enumerate(tensors)}, buffers=buffers)
    last = max((b.last for b in buffers), default=0)
    plan.extents = [
        max([(at + length) * UNIT for at, length, _, end in tensors if end >= step], default=0)
        for step in range(last + 2)
    ]
    return WeightsMemory(plan, (ABOVE + size) * UNIT, in_turns_until)


def taken(weights: WeightsMemory, *sizes: int, until: int = 0) -> list[int]:
    return [weights.take(size * UNIT, until) // UNIT for size in sizes]


def test_what_was_handed_out_stays_there_until_its_bytes_are_again() -> None:
    weights = memory(2, (0, ABOVE, 0, 0))
    weights.begin(0)
    first = weights.take(UNIT)
    weights.hold("a", first, UNIT, "tiles")
    weights.take(UNIT)
    assert weights.find("a") == "tiles"
    assert weights.take(UNIT) == first
    assert weights.find("a") is None


def test_what_is_needed_again_is_handed_out_last() -> None:
    weights = memory(3, (0, ABOVE, 0, 0))
    weights.begin(0)
    first, second, _ = (weights.take(UNIT) for _ in range(3))
    weights.hold("a", first, UNIT, "tiles")
    weights.keep("a")
    assert weights.take(UNIT) == second
    assert weights.find("a") == "tiles"


def test_what_tensors_leave_comes_after_all_that_was_left_before() -> None:
    weights = memory(2, (0, ABOVE, 0, 0), (0, 4, 1, 1))
    weights.begin(0)
    assert taken(weights, 2) == [8]
    weights.begin(1)
    # weights that come into the memory of the first tensor wait for its last readers
    assert taken(weights, 2, 2, 2, 2) == [8, 4, 6, 8]


def test_memory_that_a_tensor_takes_again_is_left_to_it() -> None:
    weights = memory(2, (0, ABOVE, 0, 0), (6, 1, 2, 2), (0, ABOVE, 3, 3))
    for step in (0, 1):
        weights.begin(step)
    assert taken(weights, 2, 2, 2, 2, 2) == [8, 0, 2, 4, 6]
    weights.hold("a", 6 * UNIT, UNIT, "in the way")
    weights.hold("b", 7 * UNIT, UNIT, "beside")
    weights.begin(2)
    assert weights.find("a") is None
    assert weights.find("b") == "beside"
    assert set(taken(weights, *[1] * 30)) == {0, 1, 2, 3, 4, 5, 7, 8, 9}
    weights.begin(3)
    assert set(taken(weights, *[1] * 8)) == {8, 9}


def test_what_is_needed_for_long_leaves_memory_to_all_tensors_until_then() -> None:
    weights = memory(2, (0, ABOVE, 0, 0), (0, 4, 2, 2), (5, 3, 4, 4))
    for step in (0, 1):
        weights.begin(step)
    assert weights.capacity == 2 * UNIT
    assert weights.capacity_until(3) == 6 * UNIT
    assert set(taken(weights, *[1] * 20, until=3)) == {4, 5, 6, 7, 8, 9}
    assert set(taken(weights, *[1] * 20, until=4)) == {4, 8, 9}


def test_zones_are_handed_out_but_while_they_are_in_use() -> None:
    plan = MemoryPlan({}, {}, set(), base=4 * UNIT, extents=[0] * 5)
    weights = WeightsMemory(plan, 6 * UNIT, zones={UNIT: Buffer("zone", 2 * UNIT, 2, 3)})
    weights.begin(0)
    weights.begin(1)
    assert set(taken(weights, *[1] * 8)) == {1, 2, 4, 5}
    assert weights.capacity_until(1) == weights.capacity_until(2) == 2 * UNIT
    assert set(taken(weights, *[1] * 8, until=2)) == {4, 5}  # they would stay up to its first use
    weights.hold("a", 2 * UNIT, UNIT, "in the way")
    for step in (2, 3):
        weights.begin(step)
        assert weights.find("a") is None
        assert set(taken(weights, *[1] * 8)) == {4, 5}
    weights.begin(4)
    assert set(taken(weights, *[1] * 8)) == {1, 2, 4, 5}


def test_zones_are_left_alone_where_weights_come_in_turns() -> None:
    plan = MemoryPlan({}, {}, set(), base=4 * UNIT, extents=[0] * 5)
    weights = WeightsMemory(plan, 6 * UNIT, 1, {UNIT: Buffer("zone", 2 * UNIT, 3, 3)})
    weights.begin(0)
    assert set(taken(weights, *[1] * 8)) == {4, 5}
    assert weights.capacity_until(0) == 2 * UNIT
    weights.begin(1)
    assert set(taken(weights, *[1] * 8)) == {1, 2, 4, 5}


def test_what_is_pinned_is_never_handed_out_again() -> None:
    weights = memory(32, (0, ABOVE, 0, 0))
    weights.begin(0)
    assert weights.pin(2 * UNIT) == 38 * UNIT
    assert set(taken(weights, *[1] * 64)) == set(range(8, 38))
    assert weights.pin(UNIT) is None  # a sixteenth of it is


def test_first_weights_come_above_the_tensors_that_there_are_till_then() -> None:
    weights = memory(2, (0, 4, 0, 1), (0, ABOVE, 2, 2), in_turns_until=1)
    weights.begin(0)
    assert weights.capacity == 6 * UNIT
    assert taken(weights, 2, 2, 2, 2) == [4, 6, 8, 4]
    weights.hold("a", 6 * UNIT, 2 * UNIT, "in the way")
    weights.hold("b", 8 * UNIT, 2 * UNIT, "beside")
    weights.begin(1)
    weights.begin(2)
    assert weights.find("a") is None
    assert weights.find("b") == "beside"
    assert set(taken(weights, *[1] * 8)) == {8, 9}
    assert weights.used == 2 * UNIT


def test_pins_leave_their_memory_to_later_tensors() -> None:
    weights = memory(32, (0, 4, 0, 1), (0, ABOVE, 2, 2), in_turns_until=1)
    weights.begin(0)
    assert weights.pin(2 * UNIT) == 38 * UNIT
    assert weights.pin(UNIT) is None
