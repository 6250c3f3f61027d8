"""Parts of one computation on several threads: in order, with the caller's NumPy state, and errors reach the caller."""

import threading

import numpy as np
import pytest

from tvm_neuron.sim import threads
from tvm_neuron.sim.threads import run_parts


@pytest.fixture(params=[1, 2, 4])
def _cores(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "cores", lambda: request.param)


@pytest.mark.usefixtures("_cores")
@pytest.mark.parametrize("count", [1, 2, 7])
def test_results_come_in_the_order_of_the_parts(count: int) -> None:
    assert run_parts([lambda n=n: n * n for n in range(count)]) == [n * n for n in range(count)]


def test_parts_run_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "cores", lambda: 2)
    meeting = threading.Barrier(2, timeout=60)
    run_parts([meeting.wait, meeting.wait])


@pytest.mark.usefixtures("_cores")
def test_numpys_settings_are_the_callers() -> None:
    with np.errstate(all="ignore"):  # a warning would be an error here
        assert run_parts([lambda: np.log(np.zeros(1)) for _ in range(4)]) == [-np.inf] * 4


@pytest.mark.usefixtures("_cores")
@pytest.mark.parametrize("number", [0, 1])
def test_an_error_reaches_the_caller_when_all_is_over(number: int) -> None:
    over = []

    def part(index: int) -> None:
        if index == number:
            raise ValueError(f"part {index}")
        over.append(index)

    with pytest.raises(ValueError, match=f"part {number}"):
        run_parts([lambda: part(0), lambda: part(1)])
    if number == 0 and threads.cores() > 1:
        assert over == [1]
