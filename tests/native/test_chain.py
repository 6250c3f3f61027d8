"""Chains of elementwise operations on all cores: the very bits of NumPy's, whatever the dtypes, shapes and steps."""

from math import prod

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

from tests.native.test_assign import as_bits
from tvm_neuron.isa.deferred import Deferred
from tvm_neuron.isa.functions import ALU
from tvm_neuron.native.chain import OPERATIONS, run_chain

_DTYPES = st.sampled_from([np.dtype(np.float32), np.dtype(ml_dtypes.bfloat16)])
_MOST_ELEMS = 1100 * 300 * 3  # 1100**3 would be 40 GB of arrays
_SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40, 3e38], np.float32)


def by_numpy(source: np.ndarray, steps: list[tuple[str, np.ndarray]], target: np.ndarray) -> None:
    found = source.astype(np.float32)
    with np.errstate(all="ignore"):
        for name, operand in steps:
            found = ALU[name](found, operand.astype(np.float32))
        target[...] = found


def bits_but_of_nan(array: np.ndarray) -> np.ndarray:
    """Bits; NaN is NaN, whatever it carries."""
    return as_bits(np.where(np.isnan(array), array.dtype.type(np.nan), array))


@settings(deadline=None)
@given(st.data(), _DTYPES)
def test_every_chain_gives_the_values_of_numpy(data: st.DataObject, target_dtype: np.dtype) -> None:
    lengths = st.lists(st.sampled_from([1, 2, 3, 40, 300, 1100]), min_size=1, max_size=3)
    shape = data.draw(lengths.filter(lambda found: prod(found) <= _MOST_ELEMS))
    random = np.random.default_rng(len(shape))

    def array() -> np.ndarray:
        missing = data.draw(st.integers(0, len(shape)))
        counts = [1 if data.draw(st.booleans()) else count for count in shape[missing:]]
        steps = [data.draw(st.sampled_from([0, 1, 2, 17, 300])) for _ in counts]
        elems = 1 + sum(step * (count - 1) for step, count in zip(steps, counts, strict=True))
        dtype = data.draw(_DTYPES)
        values = random.standard_normal(elems).astype(dtype)
        values[random.integers(0, elems, elems // 4)] = random.choice(_SPECIAL, elems // 4).astype(dtype)
        return as_strided(values, counts, [step * dtype.itemsize for step in steps])

    source = array()
    steps = [(data.draw(st.sampled_from(OPERATIONS)), array()) for _ in range(data.draw(st.integers(0, 4)))]
    gaps = [data.draw(st.sampled_from([1, 2])) for _ in shape]
    room = np.zeros([count * gap for count, gap in zip(shape, gaps, strict=True)], target_dtype)
    found, wanted = room.copy(), room.copy()
    places = tuple(slice(None, None, gap) for gap in gaps)
    run_chain(found[places], source, steps)
    by_numpy(source, steps, wanted[places])
    assert np.array_equal(bits_but_of_nan(found), bits_but_of_nan(wanted))


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_a_chain_in_place(dtype: type) -> None:
    memory = np.random.default_rng(0).standard_normal((128, 700)).astype(dtype)
    wanted = (memory[:, 3:600].astype(np.float32) + memory[:, 3:600].astype(np.float32)).astype(dtype)
    run_chain(memory[:, 3:600], memory[:, 3:600], [("add", memory[:, 3:600])])
    assert memory[:, 3:600].tobytes() == wanted.tobytes()


def test_operands_that_do_not_fit_are_refused() -> None:
    values = np.zeros((4, 5), np.float32)
    with pytest.raises(ValueError, match=r"\[4, 3\] can't be repeated to \[4, 5\]"):
        run_chain(values, values, [("add", values[:, :3])])


X = np.random.default_rng(1).standard_normal((3, 40, 5)).astype(ml_dtypes.bfloat16)
SCALE, BIAS = np.full((3, 1, 1), 0.3, np.float32), np.full((3, 1, 1), -0.1, np.float32)
COMPUTATIONS = {
    "scale, bias, relu": (3, lambda x: np.maximum(x * SCALE + BIAS, np.float32(0))),
    "an operand comes first": (1, lambda x: BIAS + x),
    "an operand comes first where that matters": (0, lambda x: BIAS - x),
    "twice the same": (1, lambda x: x * x),
    "with another chain": (2, lambda x: (x + BIAS) * (x * SCALE)),
    "another function": (0, lambda x: np.exp(x + BIAS)),
    "part of a view": (1, lambda x: np.maximum(x[..., 0], x[..., 1])),
    "part of a chain": (0, lambda x: (x + BIAS)[..., None]),
    "a sum": (0, lambda x: np.sum(x + BIAS, axis=-1)),
    "a comparison": (0, lambda x: (x > BIAS).astype(np.float32)),
    "double precision": (0, lambda x: x * np.float64(0.1)),
    "no array's function": (0, lambda x: np.where(x != 0, x, BIAS)),
    "more steps than a chain holds": (0, lambda x: sum([BIAS] * 40, x)),
}


@pytest.mark.parametrize("name", COMPUTATIONS)
def test_numpy_takes_it_for_an_array(name: str) -> None:
    steps, compute = COMPUTATIONS[name]
    found, wanted = compute(Deferred(X)), compute(X.astype(np.float32))
    assert len(found.steps if isinstance(found, Deferred) else ()) == steps
    assert found.shape == wanted.shape
    assert found.ndim == wanted.ndim
    assert np.asarray(found).dtype == wanted.dtype
    assert np.asarray(found).tobytes() == wanted.tobytes()
