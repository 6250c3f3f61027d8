"""Rounding on the way out of the engines, bit for bit."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tvm_neuron.isa.dtypes import DTYPES
from tvm_neuron.sim.execute import rounded

_FLOATS = hnp.arrays(np.float32, 8, elements=st.floats(width=32))


@given(_FLOATS)
def test_bfloat16_is_the_upper_half_rounded_to_even(values: np.ndarray) -> None:
    bits = values.view(np.uint32).astype(np.uint64)
    wanted = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    result = rounded(values, DTYPES["bfloat16"])
    is_nan = np.isnan(values)
    assert (result.view(np.uint16)[~is_nan] == wanted[~is_nan]).all()
    assert np.isnan(result[is_nan].astype(np.float32)).all()


@given(hnp.arrays(np.float32, 8, elements=st.floats(-65504, 65504, width=32)))
def test_float16_rounds_like_numpy(values: np.ndarray) -> None:
    assert rounded(values, DTYPES["float16"]).tobytes() == values.astype(np.float16).tobytes()


@pytest.mark.parametrize("name", ["int32", "int16", "int8", "uint8"])
def test_whole_numbers_round_to_even_and_saturate(name: str) -> None:
    dtype = DTYPES[name]
    limits = np.iinfo(dtype)
    values = np.array([0.5, 1.5, 2.5, 1e12, -1e12, np.inf, -np.inf, np.nan], np.float32)
    assert rounded(values, dtype).tolist() == [0, 2, 2, limits.max, limits.min, limits.max, limits.min, 0]


def test_the_same_dtype_keeps_every_bit() -> None:
    odd = np.array([0x7FC1, 0xFFFF, 0x8000, 1], np.uint16).view(ml_dtypes.bfloat16)
    assert rounded(odd, DTYPES["bfloat16"]).tobytes() == odd.tobytes()
