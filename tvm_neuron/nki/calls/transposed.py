"""Transposed loads: by the DMA where the chip's does that at a rate, else by the Tensor engine.

What the Tensor engine does not take, whole numbers, the DMA moves one by one; from SBUF by way of device memory.
"""

from itertools import product
from typing import Any

from tvm_neuron.isa.dtypes import size_bytes
from tvm_neuron.nki.calls.pointwise import tensor_copy
from tvm_neuron.nki.calls.products import is_multiplied, turned
from tvm_neuron.nki.calls.transfers import dma_copy, load, transfer
from tvm_neuron.nki.emission import Result
from tvm_neuron.nki.index import Mask
from tvm_neuron.nki.source import wrong
from tvm_neuron.nki.trace import current
from tvm_neuron.nki.view import View

_AT_A_RATE = (2, 4)  # bytes of an element that a DMA transposes


def load_transposed(src: Any, axes: Any = None) -> Result:
    """[F, ..., P] of [P, ..., F]: the first axis and the last one change places."""
    if not isinstance(src, View) or src.tensor.memory == "psum" or src.ndim < 2:
        raise wrong(f"a transposed load of {src}; it is of two axes or more, in device memory or SBUF")
    order = (src.ndim - 1, *range(1, src.ndim - 1), 0)
    given = {2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}.get(src.ndim, order)
    if axes is not None and tuple(int(axis) for axis in axes) != given:
        raise wrong(f"dma_transpose of {src} with axes {list(axes)}; the first axis and the last one change places")
    shape = tuple(src.shape[axis] for axis in order)
    is_far = src.tensor.memory == "hbm" and size_bytes(src.tensor.dtype) in _AT_A_RATE

    def write(target: View, mask: Mask | None) -> None:
        bounds = mask.bounds(src.ndim) if mask is not None else {}
        if any(low >= high for low, high in bounds.values()):
            return
        ends = {-1: -src.ndim, -src.ndim: -1}
        source = src.narrow({ends.get(axis, axis): bound for axis, bound in bounds.items()})
        result = target.fitted(shape).narrow(bounds)
        if is_far and current().device.dma_transpose_percent and result.tensor.dtype == src.tensor.dtype:
            transfer(source.permuted(order), result, None)
        elif not is_multiplied(src):
            transfer(_in_device_memory(source).permuted(order), result, None)
        else:
            _in_parts(source, result)

    return Result(shape, src.tensor.dtype, "sbuf", write)


def _in_device_memory(source: View) -> View:
    if source.tensor.memory == "hbm":
        return source
    trace = current()
    found = trace.tensor(source.shape, source.tensor.dtype, "hbm")
    trace.do(dma_copy(source), found)
    return found


def _in_parts(source: View, result: View) -> None:
    """By products with ones, as many rows and columns at a time as the array has."""
    trace = current()
    rows, columns, most = source.shape[0], source.shape[-1], trace.device.partitions
    starts = range(0, rows, most), range(0, columns, most)
    for *between, row, column in product(*map(range, source.shape[1:-1]), *starts):
        some, others = slice(row, min(row + most, rows)), slice(column, min(column + most, columns))
        tile = source[(some, *between, others)]
        if tile.tensor.memory == "hbm":
            loaded = trace.tensor(tile.shape, tile.tensor.dtype, "sbuf")
            trace.do(load(tile), loaded)
            tile = loaded
        trace.do(tensor_copy(turned(tile)), result[(others, *between, some)])
