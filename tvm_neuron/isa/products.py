"""add_products: sums of matrix products, of which each element has the same bits in a matrix of any size."""

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.native import call, leave_out, native

Array = NDArray[Any]
_F32_BYTES = 4


def add_products(total: Array, left: Array, right: Array, fresh: bool) -> None:
    """total[B, M, N] = (fresh ? 0 : total) + left[0, B, K, M].T @ right[0, B, K, N] + left[1] ... in this order.

    Instead of one, there may be any number of axes for steps and batches. All is float32, rows are contiguous. The sum
    of one product starts at 0 and takes its K terms one by one.
    """
    if native() is None:
        leave_out()
        add_products_by_numpy(total, left, right, fresh)
        return
    (k, m), n = left.shape[-2:], right.shape[-1]
    rows_apart = max(m, left.strides[-2] // _F32_BYTES), max(n, right.strides[-2] // _F32_BYTES)  # at K = 1 any stride
    lead = left.ndim - 2
    sizes = ctypes.c_int64 * lead
    call(
        "add_products",
        total.ctypes.data, len(total), m, n, k, lead, sizes(*left.shape[:lead]),
        left.ctypes.data, sizes(*left.strides[:lead]), rows_apart[0],
        right.ctypes.data, sizes(*right.strides[:lead]), rows_apart[1], fresh,
    )  # fmt: skip


def add_products_by_numpy(total: Array, left: Array, right: Array, fresh: bool) -> None:
    """The same with NumPy alone: the very bits where operands have 16 bits, since their products are exact then."""
    for number, place in enumerate(np.ndindex(left.shape[:-2])):
        target = total[number % len(total)]
        product = np.zeros_like(target)
        for column, row in zip(left[place], right[place], strict=True):
            product += column[:, None] * row
        np.add(0.0 if fresh and number < len(total) else target, product, out=target)
