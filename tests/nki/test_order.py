"""Beta 1's compiler has engines do other work than what waits: the same numbers in less time, where there is room."""

from dataclasses import replace

import numpy as np
import pytest

from tests.nki import beta1
from tvm_neuron.nki import allocate, fit, order
from tvm_neuron.nki.dialects import BETA1
from tvm_neuron.nki.emission import Record
from tvm_neuron.nki.fit import peak
from tvm_neuron.nki.kernel import Kernel, Traced
from tvm_neuron.nki.trace import Trace

AS_WRITTEN = replace(BETA1, orders=False)


def traced(kernel: Kernel, x: np.ndarray, is_ordered: bool = True) -> Traced:
    return Kernel(kernel.function, dialect=BETA1 if is_ordered else AS_WRITTEN).trace(x)


@pytest.mark.parametrize("mode", ["nest", "strict"])
def test_engines_that_take_turns_work_on_several_tiles(mode: str) -> None:
    x = np.random.default_rng(1).uniform(0, 1, (12, 128, 512)).astype(np.float32)
    one, other = traced(beta1.by_turns, x), traced(beta1.by_turns, x, is_ordered=False)
    wide = x.astype(np.float64)
    np.testing.assert_allclose(one.run(mode), np.exp(np.exp(wide) * wide), 1e-5)  # roundings of float32
    assert one.time().instructions == other.time().instructions
    assert one.time().total_ps < 0.8 * other.time().total_ps
    assert one.time().dram_bytes == other.time().dram_bytes


@pytest.mark.parametrize("mode", ["nest", "strict"])
def test_what_needs_the_one_before_keeps_its_order(mode: str) -> None:
    x = np.random.default_rng(2).integers(-99, 99, (9, 128, 64)).astype(np.float32)
    np.testing.assert_array_equal(traced(beta1.one_after_the_other, x).run(mode), x.cumsum(0))


@pytest.mark.parametrize("kernel", [beta1.by_turns, beta1.one_after_the_other])
def test_what_comes_ahead_takes_no_more_room_than_the_kernel(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(3).uniform(0, 1, (12, 128, 512)).astype(np.float32)
    monkeypatch.setattr(order, "_ROOM", 1e-3)
    peaks = []

    def watched(trace: Trace, records: list[Record]) -> list[Record]:
        found = order.ordered(trace, records)
        peaks.append(peak(trace, found))
        return found

    monkeypatch.setattr(allocate, "ordered", watched)
    one, other = traced(kernel, x), traced(kernel, x, is_ordered=False)
    assert peaks[0] <= peaks[1]
    np.testing.assert_array_equal(one.run("strict"), other.run())


def test_a_kernel_that_spills_is_ordered_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocate, "FILLED", (1 / 12,))
    monkeypatch.setattr(fit, "_KEPT", 0)
    monkeypatch.setattr(order, "_ROOM", 1 / 8)
    x = np.random.default_rng(4).uniform(0, 1, (12, 128, 512)).astype(np.float32)
    one, other = traced(beta1.kept_apart, x), traced(beta1.kept_apart, x, is_ordered=False)
    assert one.assembled.fitted == other.assembled.fitted
    assert one.assembled.fitted.saved_bytes
    assert one.time().total_ps < other.time().total_ps
    np.testing.assert_array_equal(one.run("strict"), other.run())


def test_sums_in_all_banks_keep_theirs() -> None:
    rng = np.random.default_rng(5)
    x, y = (rng.integers(-9, 9, shape).astype(np.float32) for shape in ((3, 2, 128, 128), (2, 8, 128, 512)))
    wanted = np.einsum("ahkm,hbkn->abmn", x, y, optimize=True)
    np.testing.assert_array_equal(Kernel(beta1.all_banks.function, dialect=BETA1).trace(x, y).run("strict"), wanted)
