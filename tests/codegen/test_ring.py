"""Ring: memory for weights, handed out in turns, that grows into what tensors leave."""

from tvm_neuron.allocation.layouts import ALIGNMENT_BYTES as UNIT
from tvm_neuron.codegen.emit.builder import Ring


def test_what_was_handed_out_stays_there_until_its_bytes_are_again() -> None:
    ring = Ring(4 * UNIT, 2 * UNIT)
    first = ring.take(UNIT)
    ring.hold("a", first, UNIT, "tiles")
    ring.take(UNIT)
    assert ring.find("a") == "tiles"
    assert ring.take(UNIT) == first
    assert ring.find("a") is None


def test_it_grows_downwards_once_all_of_it_was_handed_out_again() -> None:
    ring = Ring(8 * UNIT, 2 * UNIT)
    ring.take(2 * UNIT)
    ring.extend(4 * UNIT)
    # what comes now would wait for the last readers of the tensors
    assert [ring.take(UNIT) for _ in range(2)] == [8 * UNIT, 9 * UNIT]
    assert [ring.take(2 * UNIT) for _ in range(4)] == [4 * UNIT, 6 * UNIT, 8 * UNIT, 4 * UNIT]
    assert ring.capacity == 6 * UNIT


def test_it_never_takes_memory_above_its_own() -> None:
    ring = Ring(8 * UNIT, 2 * UNIT)
    ring.extend(9 * UNIT)
    assert {ring.take(UNIT) for _ in range(8)} == {8 * UNIT, 9 * UNIT}


def test_what_is_pinned_is_never_handed_out_again() -> None:
    ring = Ring(8 * UNIT, 32 * UNIT)
    pinned = ring.pin(2 * UNIT)
    assert pinned == 38 * UNIT
    assert {ring.take(UNIT) for _ in range(64)} == {at * UNIT for at in range(8, 38)}
    assert ring.pin(UNIT) is None  # a sixteenth of it is
