"""Views in float32: the very values, however the view lies in memory."""

import ml_dtypes
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

from tvm_neuron.isa.widen import as_float32

_DTYPES = st.sampled_from(["bfloat16", "float16", "float32", "int8", "int32", "bool"])


@settings(deadline=None)
@given(st.data(), _DTYPES)
def test_every_view_keeps_its_values(data: st.DataObject, name: str) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name)) if name == "bfloat16" else np.dtype(name)
    shape = data.draw(st.lists(st.sampled_from([1, 2, 3, 7, 16, 40]), min_size=1, max_size=4))
    steps = [data.draw(st.sampled_from([0, 1, 2, 3, 17, 300])) for _ in shape]  # windows and repetitions too
    elems = 1 + sum(step * (count - 1) for step, count in zip(steps, shape, strict=True))
    memory = (np.random.default_rng(elems).standard_normal(elems) * 50).astype(dtype)
    view = as_strided(memory, shape, [step * dtype.itemsize for step in steps])
    found = as_float32(view)
    assert found.dtype == np.float32
    assert np.array_equal(found, view.astype(np.float32))


def test_windows_are_converted_once() -> None:
    image = np.zeros((128, 30, 30), ml_dtypes.bfloat16)
    strides = image.strides
    windows = as_strided(image, (128, 28, 28, 3, 3), (*strides, *strides[1:]))
    found = as_float32(windows)
    assert np.shares_memory(found[:, :, :, 0, 1], found[:, :, :, 0, 0])
    assert np.shares_memory(found[:, :, :, 1], found[:, :, :, 0])
