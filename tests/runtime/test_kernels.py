"""Functions that CPU parts call, beside NumPy in double precision."""

from collections.abc import Sequence

import numpy as np
import pytest
import tvm
from numpy.typing import NDArray

from tvm_neuron.runtime import kernels

SHAPES = [
    ((3, 40), (40, 5), (3, 5)),
    ((7, 40), (40, 5), (7, 5)),
    ((3, 40), (40,), (3,)),
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
    monkeypatch.setattr(kernels, "threads", lambda: 2)
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape, dtype=np.float32) for shape in (left, right))
    out = tvm.runtime.tensor(np.full(result, np.nan, np.float32))
    kernels.matmul(tvm.runtime.tensor(a), tvm.runtime.tensor(b), out)
    # 40 products of numbers of size 1, each rounded to 2**-24 of what they add up to
    np.testing.assert_allclose(out.numpy(), a.astype(float) @ b.astype(float), atol=40 * 2.0**-24 * 8)


def convolved(
    x: NDArray[np.float64],
    w: NDArray[np.float64],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
) -> NDArray[np.float64]:
    """By definition: one window after the other."""
    rank, groups = x.ndim - 2, x.shape[1] // w.shape[1]
    x = np.pad(x, [(0, 0), (0, 0), *zip(pads[:rank], pads[rank:], strict=True)])
    spans = [(extent - 1) * dilation + 1 for extent, dilation in zip(w.shape[2:], dilations, strict=True)]
    counts = [(size - span) // stride + 1 for size, span, stride in zip(x.shape[2:], spans, strides, strict=True)]
    out = np.zeros((len(x), len(w), *counts))
    for at in np.ndindex(*counts):
        window = tuple(
            slice(i * stride, i * stride + span, dilation)
            for i, stride, span, dilation in zip(at, strides, spans, dilations, strict=True)
        )
        for o in range(len(w)):
            first = o // (len(w) // groups) * w.shape[1]
            part = x[(slice(None), slice(first, first + w.shape[1]), *window)]
            out[(slice(None), o, *at)] = (part * w[o]).sum(tuple(range(1, part.ndim)))
    return out


@pytest.mark.parametrize("limits", [(1, 1 << 7), (1 << 24, 1 << 20)])
@pytest.mark.parametrize(
    ("data", "weight", "strides", "dilations", "pads"),
    [
        ((2, 6, 9, 11), (4, 6, 3, 3), (1, 1), (1, 1), (1, 1, 1, 1)),
        ((1, 6, 9, 11), (4, 3, 3, 2), (2, 3), (2, 1), (0, 1, 2, 3)),
        ((2, 3, 20), (5, 3, 4), (3,), (2,), (2, 0)),
        ((1, 4, 5, 6, 7), (4, 2, 2, 3, 1), (1, 2, 3), (1, 1, 2), (0, 1, 0, 1, 0, 2)),
        ((3, 8, 5, 5), (2, 8, 1, 1), (1, 1), (1, 1), (0, 0, 0, 0)),
    ],
)
def test_convolve(
    data: tuple[int, ...], weight: tuple[int, ...], strides: tuple[int, ...], dilations: tuple[int, ...],
    pads: tuple[int, ...], limits: tuple[int, int], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    for name, limit in zip(("_MANY_PRODUCTS", "_PATCH_BYTES"), limits, strict=True):
        monkeypatch.setattr(kernels, name, limit)
    monkeypatch.setattr(kernels, "threads", lambda: 2)
    rng = np.random.default_rng(1)
    x, w = (rng.standard_normal(shape, dtype=np.float32) for shape in (data, weight))
    wanted = convolved(x.astype(float), w.astype(float), strides, dilations, pads)
    out = tvm.runtime.tensor(np.full(wanted.shape, np.nan, np.float32))
    kernels.convolve(tvm.runtime.tensor(x), tvm.runtime.tensor(w), strides, dilations, pads, out)
    np.testing.assert_allclose(out.numpy(), wanted, atol=60 * 2.0**-24 * 8)
