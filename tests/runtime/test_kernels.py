"""Functions that CPU parts call, beside NumPy in double precision."""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import tvm
import tvm_ffi
from numpy.typing import NDArray

from tvm_neuron.runtime import kernels
from tvm_neuron.runtime.kernels import openblas

WAYS = [
    {"matmul": kernels.matmul, "convolve": kernels.convolve},
    pytest.param(kernels.products(), marks=pytest.mark.skipif(openblas() is None, reason="NumPy has another BLAS")),
]
Way = dict[str, Callable[..., None]]

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


LARGE_SHAPES = [  # more than a million products for each thread
    ((900, 90), (90, 80), (900, 80)),
    ((20, 90), (90, 3600), (20, 3600)),
    ((2, 250, 90), (90, 140), (2, 250, 140)),
    ((2, 250, 90), (2, 90, 140), (2, 250, 140)),
    ((40, 30, 90), (40, 90, 60), (40, 30, 60)),
    ((3000, 2200), (2200,), (3000,)),
    ((2200,), (2200, 3000), (3000,)),
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("left", "right", "result"), SHAPES + LARGE_SHAPES)
def test_matmul(
    left: tuple[int, ...], right: tuple[int, ...], result: tuple[int, ...], dtype: type[np.floating], way: Way
) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(dtype) for shape in (left, right))
    out = tvm.runtime.tensor(np.full(result, np.nan, dtype))
    way["matmul"](tvm.runtime.tensor(a), tvm.runtime.tensor(b), out)
    # products of numbers of size 1, each rounded to a share of what they add up to, which grows with their root
    tolerance = 8 * left[-1] * np.finfo(dtype).eps
    np.testing.assert_allclose(out.numpy(), a.astype(float) @ b.astype(float), atol=tolerance, rtol=0)


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
        for group, kernel in enumerate(w.reshape(groups, -1, *w.shape[1:])):
            part = x[(slice(None), slice(group * w.shape[1], (group + 1) * w.shape[1]), *window)]
            first = group * len(kernel)
            out[(slice(None), slice(first, first + len(kernel)), *at)] = np.tensordot(
                part, kernel, [range(1, part.ndim)] * 2
            )
    return out


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("data", "weight", "strides", "dilations", "pads"),
    [
        ((2, 6, 9, 11), (4, 6, 3, 3), (1, 1), (1, 1), (1, 1, 1, 1)),
        ((1, 6, 9, 11), (4, 3, 3, 2), (2, 3), (2, 1), (0, 1, 2, 3)),
        ((2, 3, 20), (5, 3, 4), (3,), (2,), (2, 0)),
        ((1, 4, 5, 6, 7), (4, 2, 2, 3, 1), (1, 2, 3), (1, 1, 2), (0, 1, 0, 1, 0, 2)),
        ((3, 8, 5, 5), (2, 8, 1, 1), (1, 1), (1, 1), (0, 0, 0, 0)),
        ((2, 3, 4), (2, 3, 3), (2,), (3,), (5, 6)),  # windows that begin and end outside
        ((1, 40, 21, 33), (60, 40, 3, 3), (1, 1), (1, 1), (1, 1, 1, 1)),  # the rest: for several threads, and pieces
        ((1, 60, 6, 7), (600, 60, 3, 3), (1, 1), (1, 1), (1, 1, 1, 1)),
        ((2, 90, 30, 40), (40, 45, 1, 1), (1, 1), (1, 1), (0, 0, 0, 0)),
        ((1, 600, 9, 40), (24, 600, 2, 2), (2, 2), (1, 2), (1, 0, 0, 1)),
    ],
)
def test_convolve(
    data: tuple[int, ...], weight: tuple[int, ...], strides: tuple[int, ...], dilations: tuple[int, ...],
    pads: tuple[int, ...], way: Way, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(kernels, "_PATCH_BYTES", 1 << 7)
    rng = np.random.default_rng(1)
    x, w = (rng.standard_normal(shape, dtype=np.float32) for shape in (data, weight))
    wanted = convolved(x.astype(float), w.astype(float), strides, dilations, pads)
    out = tvm.runtime.tensor(np.full(wanted.shape, np.nan, np.float32))
    numbers = map(tvm_ffi.Shape, (strides, dilations, pads))
    way["convolve"](tvm.runtime.tensor(x), tvm.runtime.tensor(w), *numbers, out)
    tolerance = 8 * np.prod(weight[1:]) * 2.0**-24
    np.testing.assert_allclose(out.numpy(), wanted, atol=tolerance, rtol=0)


@pytest.mark.slow
@pytest.mark.skipif(openblas() is None, reason="NumPy has another BLAS")
@pytest.mark.parametrize("count", ["1", "3"])
def test_any_number_of_threads(count: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, "-k", "matmul or convolve"]
    env = os.environ | {"TVM_NUM_THREADS": count, "PYTHONPATH": ":".join(sys.path)}
    subprocess.run(command, env=env, check=True)
