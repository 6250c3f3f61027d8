"""add_products: sums of matrix products, by the BLAS that NumPy brought along where it can add to what is there."""

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.native import call, leave_out, native

Array = NDArray[Any]
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
def _sgemm() -> ctypes.c_void_p | None:
    """Where cblas_sgemm with 64-bit sizes lies, or None."""
    gemm: Any = getattr(openblas(), "scipy_cblas_sgemm64_", None)
    return None if gemm is None else ctypes.cast(gemm, ctypes.c_void_p)


def add_products(total: Array, left: Array, right: Array, fresh: bool) -> None:
    """total[B, M, N] = (fresh ? 0 : total) + left[0, B, K, M].T @ right[0, B, K, N] + left[1] ... in this order.

    Instead of one, there may be any number of axes for steps and batches. All is float32, rows are contiguous; M and N
    are 2 at least, because BLAS adds in another order for a vector.
    """
    gemm = _sgemm()
    if gemm is None or native() is None:
        leave_out()
        add_products_by_numpy(total, left, right, fresh)
        return
    (k, m), n = left.shape[-2:], right.shape[-1]
    rows_apart = max(m, left.strides[-2] // _F32_BYTES), max(n, right.strides[-2] // _F32_BYTES)  # at K = 1 any stride
    lead = left.ndim - 2
    sizes = ctypes.c_int64 * lead
    call(
        "add_products",
        gemm, total.ctypes.data, len(total), m, n, k, lead, sizes(*left.shape[:lead]),
        left.ctypes.data, sizes(*left.strides[:lead]), rows_apart[0],
        right.ctypes.data, sizes(*right.strides[:lead]), rows_apart[1], fresh,
    )  # fmt: skip


def add_products_by_numpy(total: Array, left: Array, right: Array, fresh: bool) -> None:
    """The same with NumPy alone: what `add_products` must agree with, bit for bit."""
    for number, place in enumerate(np.ndindex(left.shape[:-2])):
        target = total[number % len(total)]
        product = np.matmul(left[place].T, right[place])
        np.add(0.0 if fresh and number < len(total) else target, product, out=target)
