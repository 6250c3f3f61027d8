"""sort, argsort and topk of Relax order every dtype; TVM's own know five, and put bfloat16 in no order."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tvm
from tvm import relax

from tvm_neuron.errors import PlacementWarning

DTYPES = [
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "bfloat16", "float32",
    "float64",
]  # fmt: skip
K = 18  # more than are ranked in rounds


def drawn(dtype: str) -> np.ndarray:
    """Some equal ones, and both ends of the dtype."""
    rng, shape = np.random.default_rng(3), (3, 30)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if "float" in dtype:
        return rng.integers(-50, 50, shape).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    limits = np.iinfo(dtype)
    found = rng.integers(0, 60, shape).astype(dtype) + np.array(limits.min, dtype)
    found[:, ::2] = rng.integers(limits.max - 50, limits.max, found[:, ::2].shape, dtype)
    return found


def ran(make: Any, data: np.ndarray) -> list[np.ndarray]:
    x, builder = relax.Var("x", relax.TensorType(data.shape, str(data.dtype))), relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            found = builder.emit_output(make(x))
        builder.emit_func_output(found)
    with pytest.warns(PlacementWarning, match="nothing of the model runs on the NeuronCore"):
        machine = relax.VirtualMachine(tvm.compile(builder.get(), target="neuron"), tvm.cpu())
    result = machine["main"](tvm.runtime.tensor(data))
    return [each.numpy() for each in ([result] if isinstance(result, tvm.runtime.Tensor) else result)]


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_order_is_numpys(dtype: str) -> None:
    data = drawn(dtype)
    (found,) = ran(lambda x: relax.op.sort(x, 1, True), data)
    np.testing.assert_array_equal(found, np.sort(data, axis=1)[:, ::-1], strict=True)
    (found,) = ran(lambda x: relax.op.argsort(x, 1, False, "int32"), data)
    order = np.argsort(data, axis=1, kind="stable")
    np.testing.assert_array_equal(found, order)
    values, places = ran(lambda x: relax.op.topk(x, K, 1, "both", False, "int64"), data)
    np.testing.assert_array_equal(places, order[:, :K])
    np.testing.assert_array_equal(values, np.sort(data, axis=1)[:, :K], strict=True)


def test_few_of_float64_keep_all_digits() -> None:
    """Of float32 so few are ranked in rounds, where these would be equal."""
    data = 1 + np.random.default_rng(4).permuted(np.arange(90.0).reshape(3, 30), axis=1) * 2.0**-40
    values, places = ran(lambda x: relax.op.topk(x, 5, 1, "both", True, "int64"), data)
    np.testing.assert_array_equal(places, np.argsort(-data, axis=1)[:, :5])
    np.testing.assert_array_equal(values, -np.sort(-data, axis=1)[:, :5], strict=True)


@pytest.mark.parametrize("kind", ["values", "indices"])
def test_one_of_both(kind: str) -> None:
    data = drawn("uint64")
    (found,) = ran(lambda x: relax.op.topk(x, K, 1, kind, False, "int64"), data)
    wanted = {"values": np.sort(data, axis=1), "indices": np.argsort(data, axis=1, kind="stable")}[kind]
    np.testing.assert_array_equal(found, wanted[:, :K], strict=True)
