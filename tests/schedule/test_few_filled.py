"""Arrays of which few are filled take memory where they are written alone, and are zeros elsewhere."""

import resource
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tvm_neuron.schedule.few_filled import few_filled, where_filled

SHAPES = st.lists(st.integers(1, 5), min_size=2, max_size=4).map(tuple)


@given(weights=arrays(np.float32, SHAPES, elements=st.sampled_from([0.0, 1.5, float("nan")])))
def test_where_it_is_filled(weights: np.ndarray) -> None:
    np.testing.assert_array_equal(where_filled(weights), weights != 0)


@pytest.mark.parametrize("shape", [(0, 3), (2, 3), (200, 7, 5)])
def test_it_begins_as_zeros_and_can_be_written(shape: tuple[int, ...]) -> None:
    array = few_filled(shape, np.float32)
    assert array.shape == shape
    assert not array.any()
    array[...] = 3
    assert (array == 3).all()


@pytest.mark.skipif(sys.platform != "linux", reason="pages are asked for on Linux")
def test_a_diagonal_takes_little_memory() -> None:
    """4,000 numbers of 64 MB: a page each at most, where pages of 2 MB would take all."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    array = few_filled((4000, 4000), np.float32)
    np.fill_diagonal(array, 1)
    pages = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    assert pages < 6000
    assert array.sum() == 4000
