"""The host's fit: it finds the request that rows were made with, and rows held out are never in it."""

import pytest

from benchmarks.published import END_TO_END, ROWS, Compared, fitted_us, hold_out
from tvm_neuron.hw import load_device

HOSTED = [row for row in ROWS if row.group == END_TO_END]


def made(request_us: float, taken_us: float = 450.0) -> list[Compared]:
    """Rows whose device time is what is left of the measurement by a request."""
    times = [row.measured_us - request_us + taken_us for row in HOSTED]
    return [Compared(row, us, us, us, taken_us) for row, us in zip(HOSTED, times, strict=True)]


@pytest.mark.parametrize("request_us", [0, 215, 450])
def test_the_fit_finds_what_rows_were_made_with(request_us: int) -> None:
    rows = made(request_us)
    assert fitted_us(rows) == request_us
    assert all(row.error(request_us) == pytest.approx(0) for row in rows)
    assert rows[0].error() == pytest.approx((450 - request_us) / 600)


def test_halves_are_drawn_by_the_seed() -> None:
    rows = made(300)
    draws = [hold_out(rows, seed) for seed in range(5)]
    for fitted, held in draws:
        assert len(fitted) == len(held) == 3
        assert {row.row.what for row in [*fitted, *held]} == {row.what for row in HOSTED}
    assert len({frozenset(row.row.what for row in held) for _, held in draws}) > 1
    assert hold_out(rows, 3) == draws[3]


def test_what_is_fitted_says_so() -> None:
    for chip in ("inf2", "trn1"):
        assert load_device(chip).sources["host_request_ns"].startswith("fit: to six published latencies")
