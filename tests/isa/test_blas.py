"""Sums of matrix products by OpenBLAS itself: the bits of NumPy's way, whatever the sizes, and the right numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tvm_neuron.isa.blas import _sgemm, add_products, add_products_by_numpy

_SIZES = st.tuples(
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(1, 128),
    st.integers(2, 140),
    st.sampled_from([2, 3, 49, 128, 513]),
)


@settings(deadline=None)
@given(_SIZES, st.booleans(), st.integers(0, 2**32 - 1))
def test_both_ways_give_the_same_bits(sizes: tuple[int, ...], fresh: bool, seed: int) -> None:
    steps, batch, k, m, n = sizes
    random = np.random.default_rng(seed)
    left = random.standard_normal((steps, batch, k, m), dtype=np.float32)
    right = np.maximum(random.standard_normal((steps, batch, k, n), dtype=np.float32), -0.0)  # half of them zeros
    before = random.standard_normal((batch, m, n), dtype=np.float32)
    found, wanted = before.copy(), before.copy()
    add_products(found, left, right, fresh)
    add_products_by_numpy(wanted, left, right, fresh)
    assert found.tobytes() == wanted.tobytes()
    exact = np.einsum("sbkm,sbkn->bmn", left.astype(np.float64), right) + (0 if fresh else before)
    # each of the k products and sums rounds to half a unit of 2**-23, relative to the sum of all magnitudes
    room = np.einsum("sbkm,sbkn->bmn", np.abs(left).astype(np.float64), np.abs(right)) + np.abs(before)
    assert (np.abs(found - exact) <= room * (k + steps) * 2**-24 + 1e-30).all()


@pytest.mark.parametrize("size", [128, 3000])
def test_what_was_there_is_forgotten_when_fresh(size: int) -> None:
    total = np.full((1, 2, size), np.nan, np.float32)
    add_products(total, np.ones((1, 1, 4, 2), np.float32), np.ones((1, 1, 4, size), np.float32), fresh=True)
    assert (total == 4).all()


def test_numpys_own_wheel_has_the_routine() -> None:
    if np.show_config(mode="dicts")["Build Dependencies"]["blas"]["name"] != "scipy-openblas":  # type: ignore[index]
        pytest.skip("NumPy has another BLAS here")
    assert _sgemm() is not None
