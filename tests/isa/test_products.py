"""Sums of matrix products: the bits of NumPy's way, whatever the sizes, and the right numbers."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tvm_neuron.isa.products import add_products, add_products_by_numpy

_SIZES = st.tuples(
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(1, 128),
    st.integers(1, 140),
    st.sampled_from([1, 2, 3, 31, 49, 128, 513]),
)
_DTYPES = st.sampled_from([ml_dtypes.bfloat16, np.float16, np.float32])


@settings(deadline=None)
@given(_SIZES, st.booleans(), _DTYPES, st.integers(0, 2**32 - 1))
def test_both_ways_agree(sizes: tuple[int, ...], fresh: bool, dtype: type, seed: int) -> None:
    steps, batch, k, m, n = sizes
    random = np.random.default_rng(seed)
    left = random.standard_normal((steps, batch, k, m)).astype(dtype).astype(np.float32)
    half_zeros = np.maximum(random.standard_normal((steps, batch, k, n)), -0.0)
    right = half_zeros.astype(dtype).astype(np.float32)
    before = random.standard_normal((batch, m, n), dtype=np.float32)
    found, wanted = before.copy(), before.copy()
    add_products(found, left, right, fresh)
    add_products_by_numpy(wanted, left, right, fresh)
    if dtype is not np.float32:  # whose products round, but where a product and a sum are one operation
        assert found.tobytes() == wanted.tobytes()
    exact = np.einsum("sbkm,sbkn->bmn", left.astype(np.float64), right) + (0 if fresh else before)
    # each of the k products and sums rounds to half a unit of 2**-23, relative to the sum of all magnitudes
    room = np.einsum("sbkm,sbkn->bmn", np.abs(left).astype(np.float64), np.abs(right)) + np.abs(before)
    for sums in (found, wanted):
        assert (np.abs(sums - exact) <= room * (k + steps) * 2**-24 + 1e-30).all()


@settings(deadline=None)
@given(_SIZES, st.integers(0, 2**32 - 1), st.data())
def test_a_part_has_the_bits_of_the_whole(sizes: tuple[int, ...], seed: int, data: st.DataObject) -> None:
    _, _, k, m, n = sizes
    random = np.random.default_rng(seed)
    left, right = (random.standard_normal((1, 1, k, size), dtype=np.float32) for size in (m, n))
    row, column = data.draw(st.integers(0, m - 1)), data.draw(st.integers(0, n - 1))
    rows, columns = data.draw(st.integers(1, m - row)), data.draw(st.integers(1, n - column))
    whole, part = np.empty((1, m, n), np.float32), np.empty((1, rows, columns), np.float32)
    add_products(whole, left, right, fresh=True)
    cut = [np.ascontiguousarray(side) for side in (left[..., row : row + rows], right[..., column : column + columns])]
    add_products(part, *cut, fresh=True)
    assert part.tobytes() == whole[:, row : row + rows, column : column + columns].tobytes()


@pytest.mark.parametrize("size", [128, 3000])
def test_what_was_there_is_forgotten_when_fresh(size: int) -> None:
    total = np.full((1, 2, size), np.nan, np.float32)
    add_products(total, np.ones((1, 1, 4, 2), np.float32), np.ones((1, 1, 4, size), np.float32), fresh=True)
    assert (total == 4).all()
