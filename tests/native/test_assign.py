"""Copies on all cores: the very bits of NumPy's, whatever the dtypes, shapes and steps."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

from tvm_neuron.native import assign

_DTYPES = st.sampled_from([np.dtype(np.float32), np.dtype(ml_dtypes.bfloat16), np.dtype(np.float16)])


def as_bits(array: np.ndarray) -> np.ndarray:
    return array.view(np.uint32 if array.itemsize == 4 else np.uint16)


@settings(deadline=None)
@given(st.data(), _DTYPES, _DTYPES)
def test_every_view_gets_the_values(data: st.DataObject, target_dtype: np.dtype, source_dtype: np.dtype) -> None:
    shape = data.draw(st.lists(st.sampled_from([1, 2, 3, 40, 300]), min_size=1, max_size=3))
    order = data.draw(st.permutations(range(len(shape))))
    gaps = [data.draw(st.sampled_from([1, 2])) for _ in shape]
    steps = [data.draw(st.sampled_from([0, 1, 2, 17, 300])) for _ in shape]  # windows and repetitions too
    missing = data.draw(st.integers(0, len(shape) - 1))
    elems = 1 + sum(step * (count - 1) for step, count in zip(steps, shape, strict=True))
    memory = np.random.default_rng(elems).standard_normal(elems).astype(source_dtype)
    source = as_strided(memory, shape[missing:], [step * memory.itemsize for step in steps[missing:]])
    room = np.zeros([count * gap for count, gap in zip(shape, gaps, strict=True)], target_dtype)
    room = np.ascontiguousarray(room.transpose(order)).transpose(np.argsort(order))
    found, wanted = room.copy(order="K"), room.copy(order="K")
    places = tuple(slice(None, None, gap) for gap in gaps)
    assign(found[places], source)
    wanted[places] = source
    assert np.array_equal(as_bits(found), as_bits(wanted))


def test_every_bfloat16_keeps_its_value() -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(ml_dtypes.bfloat16)
    found = np.empty(every.shape, np.float32)
    assign(found, every)
    assert np.array_equal(as_bits(found) >> 16, as_bits(every))


@pytest.mark.parametrize("low", [0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF])
def test_rounding_is_that_of_ml_dtypes(low: int) -> None:
    every = (np.arange(1 << 16, dtype=np.uint32) << 16 | low).view(np.float32)  # NaN, infinities and subnormals too
    found = np.empty(every.shape, ml_dtypes.bfloat16)
    assign(found, every)
    with np.errstate(invalid="ignore"):
        wanted = every.astype(ml_dtypes.bfloat16)
    assert np.array_equal(as_bits(found), as_bits(wanted))


def test_arrays_that_overlap_are_read_before_they_are_written() -> None:
    memory = np.arange(10_000, dtype=np.float32)
    assign(memory[1:], memory[:-1])
    assert np.array_equal(memory, [0, *range(9_999)])


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="could not broadcast"):
        assign(np.empty((50, 100), np.float32), np.empty((50, 3), np.float32))
