"""add_products: sums of matrix products, by the BLAS that NumPy brought along where it can add to what is there."""

import ctypes
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Gemm = Callable[..., None]
_ROW_MAJOR, _PLAIN, _TRANSPOSED = 101, 111, 112
_F32_BYTES = 4


@cache
def openblas() -> ctypes.CDLL | None:
    """The OpenBLAS of NumPy's wheel; None with any other BLAS."""
    for path in Path(np.__file__).parents[1].glob("numpy.libs/*openblas*"):
        try:
            return ctypes.CDLL(str(path))
        except OSError:  # a file of another platform
            continue
    return None


@cache
def _sgemm() -> Gemm | None:
    """cblas_sgemm with 64-bit sizes, or None."""
    gemm: Any = getattr(openblas(), "scipy_cblas_sgemm64_", None)
    if gemm is None:
        return None
    size, place, number = ctypes.c_int64, ctypes.c_void_p, ctypes.c_float
    gemm.argtypes = [*[ctypes.c_int] * 3, *[size] * 3, number, place, size, place, size, number, place, size]
    gemm.restype = None
    found: Gemm = gemm
    return found


def add_products(total: Array, left: Array, right: Array, fresh: bool) -> None:
    """total[B, M, N] = (fresh ? 0 : total) + left[0, B, K, M].T @ right[0, B, K, N] + left[1] ... in this order.

    Contiguous float32; M and N are 2 at least, because BLAS adds in another order for a vector.
    """
    gemm = _sgemm()
    if gemm is None:
        add_products_by_numpy(total, left, right, fresh)
        return
    (steps, batch, k, m), n = left.shape, right.shape[3]
    a, b, c = left.ctypes.data, right.ctypes.data, total.ctypes.data
    for step in range(steps):
        keep = 0.0 if fresh and step == 0 else 1.0
        for place in range(batch):
            row = (step * batch + place) * k * _F32_BYTES
            target = c + place * m * n * _F32_BYTES
            gemm(_ROW_MAJOR, _TRANSPOSED, _PLAIN, m, n, k, 1.0, a + row * m, m, b + row * n, n, keep, target, n)


def add_products_by_numpy(total: Array, left: Array, right: Array, fresh: bool) -> None:
    """The same with NumPy alone: what `add_products` must agree with, bit for bit."""
    for a, b in zip(left, right, strict=True):
        product = np.matmul(a.swapaxes(-1, -2), b)
        np.add(0.0 if fresh else total, product, out=total)
        fresh = False
