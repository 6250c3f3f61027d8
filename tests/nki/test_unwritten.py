"""What a kernel returns without having written it is told; what it reads so is, where that reaches a result."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import nki as later
import nki.isa as later_isa
import nki.language as later_nl
import numpy as np
import pytest

from tvm_neuron.errors import KernelError

X = np.random.default_rng(0).standard_normal((100, 64)).astype(np.float32)


@later.jit
def half_written(x):
    out = later_nl.ndarray(x.shape, dtype=x.dtype, buffer=later_nl.shared_hbm)
    tile = later_nl.ndarray((100, 32), dtype=x.dtype, buffer=later_nl.sbuf)
    later_isa.dma_copy(dst=tile, src=x[:, 0:32])
    later_isa.dma_copy(dst=out[:, 0:32], src=tile)
    return out


@later.jit
def half_loaded(x, columns=64, dtype=None):
    out = later_nl.ndarray((100, columns), dtype=dtype or x.dtype, buffer=later_nl.shared_hbm)
    tile = later_nl.ndarray(x.shape, dtype=x.dtype, buffer=later_nl.sbuf)
    later_isa.dma_copy(dst=tile[:, 0:32], src=x[:, 0:32])
    made = later_nl.ndarray(x.shape, dtype=dtype or x.dtype, buffer=later_nl.sbuf)
    later_isa.tensor_scalar(dst=made, data=tile, op0=later_nl.add, operand0=1.0)
    later_isa.dma_copy(dst=out, src=made[:, 0:columns])
    return out


@nki.jit
def masked_ends(x):
    """Loads and stores are masked, what lies between is not, as in published samples."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    rows, columns = nl.arange(128)[:, None], nl.arange(64)[None, :]
    tile = nl.load(x[rows, columns], mask=rows < x.shape[0])
    nl.store(out[rows, columns], nl.log(tile), mask=rows < x.shape[0])
    return out


def test_half_an_output() -> None:
    message = r"returns hbm\[100, 64\], but writes 3200 of its 6400 elements; the first that it does not is \[0, 32\]"
    with pytest.raises(KernelError, match=message + r".*test_unwritten.py:\d+\)"):
        half_written(X)


@pytest.mark.parametrize("dtype", [None, np.int32])
def test_half_a_tile(dtype) -> None:
    """NaN in floats, and whole numbers that depend on what lay there."""
    message = r"3200 of 6400 elements of result 0, the first at \[0, 32\].*3200 elements of the float32 tile of 100"
    with pytest.raises(KernelError, match=message + r".*made at .*:\d+, at .*:\d+: write it first"):
        half_loaded(X * 9, dtype=dtype)


def test_what_reaches_no_result() -> None:
    assert np.array_equal(half_loaded(X, 32), X[:, :32] + 1)


def test_other_nans() -> None:
    """Of logarithms of negative numbers, beside rows that nothing has loaded."""
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(masked_ends(X), np.log(X), rtol=1e-5)
