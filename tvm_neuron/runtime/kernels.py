"""Functions that compiled CPU parts call; registered under `tvm_neuron.runtime.<name>`."""

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from math import prod

import numpy as np
import tvm
import tvm_ffi

from tvm_neuron.runtime.tensors import as_numpy
from tvm_neuron.sim.blas import one_thread

_MANY_PRODUCTS = 1 << 24
"""From here on, one thread takes so long (about 0.3 ms) that handing out parts is worth it."""


def matmul(a: tvm.runtime.Tensor, b: tvm.runtime.Tensor, out: tvm.runtime.Tensor) -> None:
    """out = a @ b, as ONNX and NumPy define it; tensors of one float dtype.

    Rows or whole matrices are shared out to as many threads as TVM uses. BLAS's own threads spin while they wait for
    each other, which takes many times as long as soon as anything else runs on their cores.
    """
    x, y, z = as_numpy(a), as_numpy(b), as_numpy(out)
    if x.ndim > 1 and y.ndim == 2:  # one product of all rows
        rows = prod(x.shape[:-1])
        x, z = x.reshape(rows, x.shape[-1]), z.reshape(rows, z.shape[-1])
    is_split = x.ndim > 1 and (y.ndim == 2 or x.shape[:-2] == y.shape[:-2])
    is_split = is_split and z.size * x.shape[-1] >= _MANY_PRODUCTS
    parts = min(_threads(), len(x)) if is_split else 1
    bounds = [len(x) * part // parts for part in range(parts + 1)]
    slices = [slice(*pair) for pair in pairwise(bounds)]
    with one_thread():
        if parts == 1:
            np.matmul(x, y, out=z)
        else:
            list(_pool().map(lambda part: np.matmul(x[part], y if y.ndim == 2 else y[part], out=z[part]), slices))


@cache
def _threads() -> int:
    return int(tvm_ffi.get_global_func("runtime.NumThreads")())


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_threads(), "tvm_neuron")
