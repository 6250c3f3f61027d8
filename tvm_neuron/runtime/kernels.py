"""Functions that compiled CPU parts call; registered under `tvm_neuron.runtime.<name>`.

BLAS's own threads spin while they wait for each other, which takes many times as long as soon as anything else runs on
their cores. So each product runs on one thread, and parts are shared out to as many threads as parallel loops use.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise, product
from math import prod
from typing import Any

import numpy as np
import tvm
from numpy.typing import NDArray

from tvm_neuron.runtime.host import threads
from tvm_neuron.runtime.tensors import as_numpy
from tvm_neuron.sim.blas import one_thread

_MANY_PRODUCTS = 1 << 24
"""From here on, one thread takes so long (about 0.3 ms) that handing out parts is worth it."""
_PIECES = 2
"""How many pieces a thread gets of a product: with more, the next one can take over from one that is late."""
_PATCH_BYTES = 1 << 20
"""Operands of a convolution are laid out for BLAS in pieces of this size, which stay in a core's cache."""


def matmul(a: tvm.runtime.Tensor, b: tvm.runtime.Tensor, out: tvm.runtime.Tensor) -> None:
    """out = a @ b, as ONNX and NumPy define it; tensors of one float dtype."""
    x, y, z = as_numpy(a), as_numpy(b), as_numpy(out)
    if x.ndim > 1 and y.ndim == 2:  # one product of all rows
        rows = prod(x.shape[:-1])
        x, z = x.reshape(rows, x.shape[-1]), z.reshape(rows, z.shape[-1])
    is_split = min(x.ndim, y.ndim) > 1 and (y.ndim == 2 or x.shape[:-2] == y.shape[:-2])
    is_split = is_split and z.size * x.shape[-1] >= _MANY_PRODUCTS
    is_by_columns = y.ndim == 2 and z.shape[-1] > len(x)  # each part lays out all of the other operand for itself
    length = z.shape[-1] if is_by_columns else len(z)

    def part(piece: slice) -> None:
        if is_by_columns:
            np.matmul(x, y[:, piece], out=z[:, piece])
        else:
            np.matmul(x[piece], y if y.ndim == 2 else y[piece], out=z[piece])

    with one_thread():
        if is_split:
            _share_out(part, _slices(length, min(_PIECES * threads(), length)))
        else:
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
    count = max(1, -(-z.shape[2] * kernels.shape[2] * inner * x.itemsize // _PATCH_BYTES))
    is_split = z.size * kernels.shape[2] >= _MANY_PRODUCTS
    if is_split:
        count = -(-count // threads()) * threads()  # as many for each
    rows = _slices(z.shape[2], min(count, z.shape[2]))

    def part(task: tuple[int, int, slice]) -> None:
        image, group, piece = task
        channels = windows[image, group * w.shape[1] : (group + 1) * w.shape[1]]
        patch = np.ascontiguousarray(channels[(slice(None),) * (rank + 1) + (piece,)])
        place = slice(piece.start * inner, piece.stop * inner)
        np.matmul(kernels[group], patch.reshape(kernels.shape[2], -1), out=flat[image, group, :, place])

    tasks = product(range(z.shape[0]), range(groups), rows)
    with one_thread():
        if is_split:
            _share_out(part, tasks)
        else:
            for task in tasks:
                part(task)


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


def _slices(length: int, parts: int) -> list[slice]:
    return [slice(*pair) for pair in pairwise(length * part // parts for part in range(parts + 1))]


def _share_out(part: Callable[[Any], None], tasks: Iterable[Any]) -> None:
    """Every thread takes the next task when it is done; this one does what no other has begun."""
    waiting = iter(list(tasks))

    def work() -> None:
        for task in waiting:
            part(task)

    helpers = [_pool().submit(work) for _ in range(threads() - 1)]
    work()
    for helper in helpers:
        if not helper.cancel():
            helper.result()


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads(), "tvm_neuron")
