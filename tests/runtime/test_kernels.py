"""Functions that CPU parts call, beside NumPy in double precision."""

import numpy as np
import pytest
import tvm

from tvm_neuron.runtime import kernels

SHAPES = [
    ((3, 40), (40, 5), (3, 5)),
    ((2, 3, 40), (40, 5), (2, 3, 5)),
    ((2, 3, 40), (2, 40, 5), (2, 3, 5)),
    ((3, 40), (2, 40, 5), (2, 3, 5)),
    ((4, 1, 3, 40), (2, 40, 5), (4, 2, 3, 5)),
    ((40,), (40, 5), (5,)),
    ((2, 3, 40), (40,), (2, 3)),
    ((3, 0), (0, 5), (3, 5)),
    ((0, 4), (4, 0), (0, 0)),
]


@pytest.mark.parametrize("limit", [1, 1 << 24])
@pytest.mark.parametrize(("left", "right", "result"), SHAPES)
def test_matmul(
    left: tuple[int, ...], right: tuple[int, ...], result: tuple[int, ...], limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "_MANY_PRODUCTS", limit)
    monkeypatch.setattr(kernels, "_threads", lambda: 2)
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape, dtype=np.float32) for shape in (left, right))
    out = tvm.runtime.tensor(np.full(result, np.nan, np.float32))
    kernels.matmul(tvm.runtime.tensor(a), tvm.runtime.tensor(b), out)
    # 40 products of numbers of size 1, each rounded to 2**-24 of what they add up to
    np.testing.assert_allclose(out.numpy(), a.astype(float) @ b.astype(float), atol=40 * 2.0**-24 * 8)
