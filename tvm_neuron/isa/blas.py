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

    Instead of one, there may be any number of axes for steps and batches. All is float32, rows are contiguous; M and N
    are 2 at least, because BLAS adds in another order for a vector.
    """
    gemm = _sgemm()
    if gemm is None:
        add_products_by_numpy(total, left, right, fresh)
        return
    (k, m), n = left.shape[-2:], right.shape[-1]
    batch, target, target_step = len(total), total.ctypes.data, total.strides[0]
    rows_apart = max(m, left.strides[-2] // _F32_BYTES), max(n, right.strides[-2] // _F32_BYTES)  # at K = 1 any stride
    for number, (a, b) in enumerate(zip(_places(left), _places(right), strict=True)):
        keep = 0.0 if fresh and number < batch else 1.0
        c = target + number % batch * target_step
        gemm(_ROW_MAJOR, _TRANSPOSED, _PLAIN, m, n, k, 1.0, a, rows_apart[0], b, rows_apart[1], keep, c, n)


def _places(matrices: Array) -> list[int]:
    """The address of each matrix, in the order of the leading axes."""
    places = np.array([matrices.ctypes.data])
    for count, step in zip(matrices.shape[:-2], matrices.strides, strict=False):
        places = np.add.outer(places, np.arange(count) * step).ravel()
    found: list[int] = places.tolist()
    return found


def add_products_by_numpy(total: Array, left: Array, right: Array, fresh: bool) -> None:
    """The same with NumPy alone: what `add_products` must agree with, bit for bit."""
    for number, place in enumerate(np.ndindex(left.shape[:-2])):
        target = total[number % len(total)]
        product = np.matmul(left[place].T, right[place])
        np.add(0.0 if fresh and number < len(total) else target, product, out=target)
