"""The model's products run on one thread, and the caller's setting comes back."""

import pytest

from tvm_neuron.sim.blas import _controls, one_thread


def test_one_thread_inside_and_as_before_outside() -> None:
    controls = _controls()
    if controls is None:
        pytest.skip("NumPy has another BLAS than OpenBLAS here")
    get, _ = controls
    before = get()
    with one_thread():
        assert get() == 1
    assert get() == before
