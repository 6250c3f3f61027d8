"""Cores that slow each other: against the rates of the DRAM and of the ports, and the clock of one core alone."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sim.small import program
from tvm_neuron.hw import load_device, load_instance
from tvm_neuron.isa import DmaCopy, DramTile, Matmul, Tile, affine
from tvm_neuron.program import Program
from tvm_neuron.sim import Line, interval_ps, time_program

DEVICE = load_device("inf1")
INSTANCE = load_instance("", DEVICE)
PS = 10**12


def reading(transfers: int, products: int = 0) -> Program:
    """Transfers of half a megabyte each, and so many products beside them."""
    rows = ((2048, 128), (1, 2048))
    copy = DmaCopy(_tile("sbuf", "bfloat16", 2048), DramTile(0, "bfloat16", affine(0), rows), 0)
    moving, stationary = _tile("sbuf", "bfloat16", 512), _tile("sbuf", "bfloat16", 64)
    product = Matmul(stationary, moving, _tile("psum", "float32", 512, 64), ())
    return program(*[copy] * transfers, *[product] * products)


def _tile(space: str, dtype: str, elems: int, partitions: int = 128) -> Tile:
    return Tile(space, dtype, affine(0), partitions, affine(0), ((1, elems),))


def together(*programs: Program) -> list[float]:
    return interval_ps([Line([one], DEVICE, [1], first_core=at) for at, one in enumerate(programs)], INSTANCE)


def dram_ps(programs: list[Program]) -> float:
    moved = sum(time_program(one, DEVICE).dram_bytes for one in programs)
    return moved * PS / INSTANCE.chip_dram_bytes_per_second


def test_a_core_alone_takes_its_own_time() -> None:
    for one in (reading(5), reading(2, 300)):
        assert together(one) == [time_program(one, DEVICE).total_ps]


@pytest.mark.parametrize("cores", [2, 3, 4])
def test_cores_that_read_share_the_rate_of_their_chip(cores: int) -> None:
    one = reading(40)
    alone, shared = time_program(one, DEVICE).total_ps, dram_ps([one] * cores)
    assert (shared > alone) == (cores > 2)
    found = together(*[one] * cores)
    assert found == pytest.approx([max(alone, shared)] * cores, rel=0.04)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 40), st.integers(0, 60)), min_size=3, max_size=4))
def test_together_they_never_have_more_than_the_rate_of_their_chip(sizes: list[tuple[int, int]]) -> None:
    programs = [reading(*size) for size in sizes]
    moved = [time_program(one, DEVICE).dram_bytes for one in programs]
    had = sum(size * PS / ps for size, ps in zip(moved, together(*programs), strict=True))
    assert had <= INSTANCE.chip_dram_bytes_per_second * (1 + 1e-9)


def test_ports_of_several_lines_are_not_overdrawn() -> None:
    one, size = reading(2), 4_000_000
    lines = [Line([one] * 4, DEVICE, [1] * 4, {0: size}, first_core=at) for at in (1, 2)]
    had = sum(size * PS / ps for ps in interval_ps(lines, INSTANCE))
    assert 0.8 * INSTANCE.link_bytes_per_second < had <= INSTANCE.link_bytes_per_second * (1 + 1e-9)


def test_cores_of_another_chip_do_not_matter() -> None:
    one = reading(20)
    lines = [Line([one], DEVICE, [1], first_core=at * DEVICE.cores_per_chip) for at in range(4)]
    assert interval_ps(lines, INSTANCE) == [time_program(one, DEVICE).total_ps] * 4


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 8), st.integers(0, 400)), min_size=1, max_size=4))
def test_between_what_each_takes_alone_and_all_of_them_in_turn(sizes: list[tuple[int, int]]) -> None:
    programs = [reading(*size) for size in sizes]
    alone = [time_program(one, DEVICE).total_ps for one in programs]
    for own, found in zip(alone, together(*programs), strict=True):
        assert own <= found <= sum(alone)


def test_a_port_passes_what_its_rate_lets_through() -> None:
    one = reading(1)
    size = 10_000_000
    lines = [Line([one] * 5, DEVICE, [1] * 5, {0: size})]  # the fifth core is on the second chip
    assert interval_ps(lines, INSTANCE) == [pytest.approx(size * PS / INSTANCE.link_bytes_per_second)]
    quick = replace(INSTANCE, link_bytes_per_second=10 * INSTANCE.link_bytes_per_second)
    # two of the chip's cores write to the port's buffer what the port reads: no more than the DRAM gives
    assert interval_ps(lines, quick)[0] < size * PS / INSTANCE.link_bytes_per_second / 4


def test_cores_in_turn_take_more_inputs() -> None:
    one = reading(2, 2000)
    alone = time_program(one, DEVICE).total_ps
    assert interval_ps([Line([one], DEVICE, [2])], INSTANCE) == [pytest.approx(alone / 2, rel=0.01)]
    assert interval_ps([Line([one, one], DEVICE, [2, 1])], INSTANCE) == [pytest.approx(alone, rel=0.01)]
