"""Conversions between all dtypes of models on the core, down to the instructions, bit for bit on random bit patterns.

The references are NumPy's and ml_dtypes' conversions. What those leave open is written out: floats beyond an integer's
range take the low bits in up to 16 bits and saturate in more, and of NaN only that it stays one is compared.
"""

from functools import lru_cache
from itertools import permutations
from typing import Any

import numpy as np
import pytest
import tvm
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tvm import relax

import tvm_neuron
from tvm_neuron import relay
from tvm_neuron.isa.dtypes import DTYPES
from tvm_neuron.partition.constraints import SUPPORTED_DTYPES

_SHAPE = (4, 32)
_LARGEST_INT32 = 2**31 - 128  # that float32 holds
_PAIRS = list(permutations([dtype for dtype in DTYPES if dtype in SUPPORTED_DTYPES], 2))


@lru_cache(maxsize=1)  # an executor has the memory of a core
def _converter(source: str, target: str) -> Any:
    """An executor of `source` to `target`, all of it on the core and compiled without any other rounding."""
    x = relax.Var("x", relax.TensorType(_SHAPE, source))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.op.astype(x, target)))
    options = tvm_neuron.BuildOptions(fp32_cast="none", must_compile=True)
    library = relay.build(builder.get(), target="neuron/inf2", options=options)
    return relay.graph_executor.GraphModule(library["default"](tvm.cpu()))


def _patterns(dtype: np.dtype) -> st.SearchStrategy[np.ndarray]:
    """Arrays of all bit patterns of a dtype."""
    if dtype == np.bool_:
        return hnp.arrays(np.bool_, _SHAPE)
    bits = np.dtype(f"uint{8 * dtype.itemsize}")
    return hnp.arrays(bits, _SHAPE, elements=hnp.from_dtype(bits)).map(lambda array: array.view(dtype))


def _expected(values: np.ndarray, target: np.dtype) -> np.ndarray:
    if values.dtype.kind in "biu" or target.kind not in "iu":
        return values.astype(target)
    whole = np.trunc(values.astype(np.float64))
    if target == np.int32:
        return np.clip(whole, -(2**31), _LARGEST_INT32).astype(target)
    low_bits = np.where(np.isfinite(whole), np.mod(whole, 2.0 ** (8 * target.itemsize)), 0)
    return low_bits.astype(np.int64).astype(target)


def _is_nan(values: np.ndarray) -> np.ndarray:
    return np.isnan(values.astype(np.float32)) if values.dtype.kind not in "biu" else np.zeros(values.shape, bool)


@pytest.mark.parametrize(("source", "target"), _PAIRS, ids=["-".join(pair) for pair in _PAIRS])
@settings(max_examples=25, deadline=None)
@given(data=st.data())
@pytest.mark.filterwarnings("ignore:invalid value|overflow")
def test_every_pair(source: str, target: str, data: st.DataObject) -> None:
    values = data.draw(_patterns(DTYPES[source]))
    executor = _converter(source, target)
    executor.run(x=values)
    found = executor.get_output(0).numpy()
    wanted = _expected(values, DTYPES[target])
    is_nan = _is_nan(values)
    assert found.dtype == wanted.dtype
    assert found[~is_nan].tobytes() == wanted[~is_nan].tobytes()
    if wanted.dtype.kind not in "biu":
        assert np.isnan(found[is_nan].astype(np.float32)).all()
