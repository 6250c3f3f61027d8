"""Transfers between device memory and SBUF."""

from dataclasses import replace
from functools import partial
from typing import Any

from tvm_neuron.isa import DmaCopy, DmaGather, DramTile, Tile
from tvm_neuron.nki.access import Chosen
from tvm_neuron.nki.calls.pointwise import in_sbuf, memset
from tvm_neuron.nki.emission import Result
from tvm_neuron.nki.index import Mask
from tvm_neuron.nki.source import wrong
from tvm_neuron.nki.trace import current
from tvm_neuron.nki.view import View


def load(src: Any, dtype: Any = None) -> Result:
    """A tile in SBUF from device memory."""
    if isinstance(src, Chosen):
        return gather(src)
    if not isinstance(src, View) or src.tensor.memory != "hbm":
        raise wrong(f"load of {src}; it loads tensors in device memory")
    return Result(src.shape, src.tensor.dtype, "sbuf", partial(transfer, src))


def transfer(src: View, target: View, mask: Mask | None) -> None:
    """Has the DMA bring `src` to `target`."""
    trace = current()
    ring = trace.ring(target.tensor.memory == "hbm")
    if target.tensor.memory == "hbm" and mask is None:
        trace.check_apart(target)
    same = target if target.shape == src.shape else target.fitted(src.shape)
    trace.emit(DmaCopy, {"target": same, "source": src}, mask, ring=ring)


def gather(src: Chosen) -> Result:
    """Elements whose places lie in a tile, in SBUF."""

    def build(target: Tile, source: DramTile, positions: Tile, ring: int) -> DmaGather:
        return DmaGather(target, replace(source, dims=((src.step, src.count), *source.dims)), positions, ring)

    def write(target: View, mask: Mask | None) -> None:
        views = {"target": target.fitted(src.shape), "source": src.rows, "positions": src.positions}
        current().emit(build, views, mask, ring=current().ring(False))

    return Result(src.shape, src.rows.tensor.dtype, "sbuf", write)


def dma_copy(src: Any) -> Result:
    """The same values between device memory and SBUF, either way."""
    if isinstance(src, Chosen):
        return gather(src)
    if not isinstance(src, View) or src.tensor.memory == "psum":
        raise wrong(f"dma_copy of {src}; it reads device memory and SBUF")
    return Result(src.shape, src.tensor.dtype, "sbuf", partial(transfer, src))


def store(dst: Any, value: Any, mask: Any = None) -> None:
    """Writes a tile to device memory."""
    if not isinstance(dst, View) or dst.tensor.memory != "hbm":
        raise wrong(f"store to {dst}; it stores to tensors in device memory")
    trace = current()
    trace.settle()
    if not isinstance(value, View):
        filled = trace.tensor(dst.shape, dst.tensor.dtype, "sbuf")
        trace.do(memset(dst.shape, value, dst.tensor.dtype), filled)
        value = filled
    value = in_sbuf(value)
    trace.do(dma_copy(value if value.elems < dst.elems else value.fitted(dst.shape)), dst, mask)
