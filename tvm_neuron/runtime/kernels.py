"""Products of matrices and convolutions that compiled CPU parts call: by NumPy's BLAS, in C++ where that is OpenBLAS.

Both `matmul` and `convolve` are written twice. matmul.cc and convolve.cc share a product out to the threads of parallel
loops; the functions here do the same with any BLAS, and are what those are tested against.
"""

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import tvm
import tvm_ffi
from numpy.typing import NDArray

from tvm_neuron.runtime.tensors import as_numpy

_BLAS = (
    "scipy_cblas_sgemm64_", "scipy_cblas_sgemv64_", "scipy_cblas_dgemm64_", "scipy_cblas_dgemv64_",
    "scipy_openblas_get_num_threads64_", "scipy_openblas_set_num_threads64_",
)  # fmt: skip
"""What `tvm_neuron.runtime.blas.use` takes the addresses of; of NumPy's wheels."""
_PATCH_BYTES = 1 << 20
"""Operands of a convolution are laid out for BLAS in pieces of this size, which stay in a core's cache."""


@cache
def openblas() -> ctypes.CDLL | None:
    """The OpenBLAS of NumPy's wheel; None with any other BLAS."""
    for path in Path(np.__file__).parents[1].glob("numpy.libs/*openblas*"):
        try:
            return ctypes.CDLL(str(path))
        except OSError:  # a file of another platform
            continue
    return None


def products() -> dict[str, Callable[..., None]]:
    """`matmul` and `convolve` as this process has them."""
    library = openblas()
    if not all(hasattr(library, name) for name in _BLAS):
        return {"matmul": matmul, "convolve": convolve}
    addresses = [ctypes.cast(getattr(library, name), ctypes.c_void_p).value for name in _BLAS]
    tvm_ffi.get_global_func("tvm_neuron.runtime.blas.use")(*addresses)
    return {name: tvm_ffi.get_global_func(f"tvm_neuron.runtime.blas.{name}") for name in ("matmul", "convolve")}


def matmul(a: tvm.runtime.Tensor, b: tvm.runtime.Tensor, out: tvm.runtime.Tensor) -> None:
    """out = a @ b, as ONNX and NumPy define it; tensors of one float dtype."""
    x, y, z = as_numpy(a), as_numpy(b), as_numpy(out)
    if x.ndim > 1 and y.ndim == 2:  # one product of all rows
        rows = prod(x.shape[:-1])
        x, z = x.reshape(rows, x.shape[-1]), z.reshape(rows, z.shape[-1])
    np.matmul(x, y, out=z)


def convolve(
    data: tvm.runtime.Tensor,
    weight: tvm.runtime.Tensor,
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
    out: tvm.runtime.Tensor,
) -> None:
    """out[n, o] = sum of data[n, c] and weight[o, c] over the windows; any number of spatial axes, one float dtype.

    `pads` are the zeros before each spatial axis and then those after each. The channels of `out` are in as many groups
    as those of `weight` go into those of `data`.
    """
    x, w, z = as_numpy(data), as_numpy(weight), as_numpy(out)
    rank, groups = x.ndim - 2, x.shape[1] // w.shape[1]
    windows = _windows(x, w.shape[2:], strides, dilations, pads)
    kernels = w.reshape(groups, w.shape[0] // groups, prod(w.shape[1:]))
    flat = z.reshape(z.shape[0], groups, kernels.shape[1], prod(z.shape[2:]))
    inner = prod(z.shape[3:])
    rows = max(1, _PATCH_BYTES // max(1, kernels.shape[2] * inner * x.itemsize))
    for image, group in np.ndindex(z.shape[0], groups):
        channels = windows[image, group * w.shape[1] : (group + 1) * w.shape[1]]
        for begin in range(0, z.shape[2], rows):
            patch = np.ascontiguousarray(channels[(slice(None),) * (rank + 1) + (slice(begin, begin + rows),)])
            place = slice(begin * inner, (begin + rows) * inner)
            np.matmul(kernels[group], patch.reshape(kernels.shape[2], -1), out=flat[image, group, :, place])


def _windows(
    x: NDArray[Any], extents: Sequence[int], strides: Sequence[int], dilations: Sequence[int], pads: Sequence[int]
) -> NDArray[Any]:
    """A view [n, c, *window, *place] of the padded data."""
    rank = len(extents)
    if any(pads):
        inside = [slice(low, low + size) for low, size in zip(pads[:rank], x.shape[2:], strict=True)]
        sizes = [low + size + high for low, size, high in zip(pads[:rank], x.shape[2:], pads[rank:], strict=True)]
        padded = np.zeros((*x.shape[:2], *sizes), x.dtype)
        padded[:, :, *inside] = x
        x = padded
    spans = [dilation * (extent - 1) + 1 for dilation, extent in zip(dilations, extents, strict=True)]
    view = np.lib.stride_tricks.sliding_window_view(x, spans, tuple(range(2, 2 + rank)))
    steps = [slice(None, None, int(step)) for step in (*strides, *dilations)]
    return view[(slice(None), slice(None), *steps)].transpose(0, 1, *range(2 + rank, 2 + 2 * rank), *range(2, 2 + rank))
