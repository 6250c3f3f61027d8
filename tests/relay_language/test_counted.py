"""argwhere and unique, whose results are as long as the data decide, beside NumPy."""

import numpy as np
import pytest
import tvm

from tvm_neuron import relay
from tvm_neuron.errors import PlacementWarning

RNG = np.random.default_rng(12)
VALUES = RNG.integers(0, 4, 9).astype("float32")


def _run(x: relay.Var, result: relay.Expr, *inputs: np.ndarray) -> list[np.ndarray]:
    mod = tvm.IRModule.from_expr(relay.Function([x], result))
    with pytest.warns(PlacementWarning):
        run = relay.create_executor(mod=mod, target="neuron").evaluate()
    found = [run(each) for each in inputs]
    return [[part.numpy() for part in each] if isinstance(each, list) else each.numpy() for each in found]


@pytest.mark.parametrize("dtype", ["bool", "float32", "int32"])
def test_argwhere(dtype: str) -> None:
    inputs = [RNG.integers(0, 2, (3, 2, 2)).astype(dtype), np.ones((3, 2, 2), dtype), np.zeros((3, 2, 2), dtype)]
    x = relay.var("x", shape=(3, 2, 2), dtype=dtype)
    for given, found in zip(inputs, _run(x, relay.argwhere(x), *inputs), strict=True):
        assert found.dtype == np.int32
        np.testing.assert_array_equal(found, np.argwhere(given))


@pytest.mark.parametrize("is_sorted", [True, False])
def test_unique(is_sorted: bool) -> None:
    x = relay.var("x", shape=VALUES.shape)
    (found,) = _run(x, relay.unique(x, is_sorted, return_counts=True).astuple(), VALUES)
    values, first, inverse, counts = np.unique(VALUES, True, True, True)
    order = np.arange(len(values)) if is_sorted else np.argsort(first)
    wanted = [values[order], first[order], np.argsort(order)[inverse], [len(values)], counts[order]]
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)
    assert [str(each.dtype) for each in found] == ["float32", *["int32"] * 4]
    assert len(relay.unique(x)) == 4


def test_what_follows_has_the_same_length() -> None:
    x = relay.var("x", shape=(4,))
    places = relay.argwhere(x)
    given = np.float32([0, 2, 0, 3])
    (found,) = _run(x, relay.sum(places + places, axis=0), given)
    assert found.tolist() == [8]
