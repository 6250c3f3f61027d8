"""shift_clips: a clip after a bias takes one instruction: its bounds move by the bias, which those who read it add.

clip(x + b, low, high) = clip(x, low - b, high - b) + b. What multiplies the result by constants adds their products
with b to its own bias, at compile time. One instruction takes both bounds, each a number for every partition.

Most of what is clipped is clipped at zero, and is not to be wrong by what rounds that bound: a channel's weights are
scaled so that its bias is a number of the dtype in which the result is kept, and those of its readers are divided. That
is less than the weights are rounded by.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.codegen.kernels.affine import channel_constant, constant_expr, gather_constants, share_constants
from tvm_neuron.codegen.kernels.channels_of_ones import possible_ones
from tvm_neuron.codegen.overlap.work import work_of
from tvm_neuron.hw import Device
from tvm_neuron.isa.dtypes import DTYPES
from tvm_neuron.schedule.expr import Apply, Expr, Index, Load, Num, rewrite
from tvm_neuron.schedule.kernel import ROOT, Contraction, Kernel
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.uses import readers_of

_NEAR = 2.0**-8  # a scale is that near to 1: bfloat16 rounds by half of it


@dataclass(frozen=True)
class _Shifted:
    """A kernel whose result is `scale * y - shift`, where it was y; both for each channel."""

    kernel: Kernel
    scale: NDArray[np.float64]
    shift: NDArray[np.float64]


def shift_clips(kernels: list[Kernel], partition_of: Mapping[Tensor, int], device: Device) -> list[Kernel]:
    """The kernels, clips shifted where that keeps ACT and POOL for less time; not where the array can add the bias."""
    readers = readers_of(kernels)
    ones = possible_ones(kernels, partition_of, device)
    changed: dict[Kernel, Kernel] = {}
    for kernel in kernels:
        its = readers.get(kernel.out, [])
        if not its or not all(_only_multiplies(reader, kernel.out, partition_of) for reader in its):
            continue
        if not ones.keys().isdisjoint(kernel.multiplied()):
            continue
        before = [changed.get(each, each) for each in (kernel, *its)]
        shifted = _shifted(before[0], partition_of[kernel.out], {_root(reader).dtype for reader in its})
        if shifted is None:
            continue
        after = [shifted.kernel, *(_reading(reader, shifted) for reader in before[1:])]
        if _passes_ps(after, device) < _passes_ps(before, device):
            changed |= dict(zip((kernel, *its), after, strict=True))
    return [changed.get(kernel, kernel) for kernel in kernels]


def _only_multiplies(reader: Kernel, tensor: Tensor, partition_of: Mapping[Tensor, int]) -> bool:
    """Whether it sums products of all channels with constants, and reads the tensor for nothing else."""
    root = reader.root
    if not isinstance(root, Contraction) or root.data is not tensor or root.side or root.scale:
        return False
    dim = partition_of[tensor]
    is_whole = root.maps[dim] == Linear(0) and root.weights.shape[0] == tensor.shape[dim]
    return is_whole and all(load.tensor is not tensor for load in reader.operand_loads())


def _shifted(kernel: Kernel, dim: int, dtypes: set[str]) -> _Shifted | None:
    """The kernel without its bias, if it clips all of a tensor, there is no padding, that is kept in one dtype."""
    root, out, channel = kernel.root, kernel.out, kernel.channel
    if not isinstance(root, Contraction) or root.side or out.kind != "temp" or out.is_spread or len(dtypes) > 1:
        return None
    if kernel.out_maps[dim] != Linear(0, {channel: 1}) or out.shape[dim] != channel.extent:
        return None
    if channel.extent * prod(axis.extent for axis in kernel.free) != out.elems:
        return None
    match kernel.expr:
        case Apply("min", (Apply("max", (Apply("add", (inner, bias)), Num(low))), Num(high))) if inner is ROOT:
            found = channel_constant(bias, channel)
        case _:
            return None
    # As large a bias as the bounds costs the result one of its digits.
    if found is None or np.abs(found).max() > min((abs(bound) for bound in (low, high) if bound), default=0):
        return None
    bias_of = np.broadcast_to(found, (channel.extent,))
    shift = bias_of.astype(DTYPES[dtypes.pop()]).astype(np.float64)
    scale = np.divide(shift, bias_of, out=np.ones_like(shift), where=bias_of != 0)
    if np.abs(scale - 1).max() > _NEAR:  # float16 has fewer digits for the smallest numbers
        return None
    bounds = [constant_expr(bound * scale - shift, channel) for bound in (low, high)]
    expr = Apply("min", (Apply("max", (ROOT, bounds[0])), bounds[1]))
    weights = root.weights * scale.astype(np.float32)
    return _Shifted(replace(kernel, expr=expr, root=replace(root, weights=weights)), scale, shift)


def _reading(reader: Kernel, shifted: _Shifted) -> Kernel:
    """The reader on the shifted tensor: its weights divided, their products with the shift added."""
    root = _root(reader)
    by_channel = (-1, *(1 for _ in root.weights.shape[1:]))
    weights: NDArray[Any] = root.weights / shifted.scale.astype(np.float32).reshape(by_channel)
    multiplied = weights.astype(DTYPES[root.dtype]).astype(np.float64)  # as the array has them
    added = shifted.shift @ multiplied.reshape(len(weights), -1, weights.shape[-1]).sum(axis=1)
    total = Apply("add", (ROOT, constant_expr(added, reader.channel)))

    def leaf(part: Num | Index | Load) -> Expr:
        return total if part is ROOT else part

    expr = share_constants(gather_constants(rewrite(reader.expr, leaf), reader.channel))
    return replace(reader, expr=expr, root=replace(root, weights=weights))


def _passes_ps(kernels: Sequence[Kernel], device: Device) -> int:
    """How long the ways out of PSUM keep ACT and POOL."""
    found = [work_of(kernel, device) for kernel in kernels]
    return sum(work["act"] + work["pool"] for work in found)


def _root(kernel: Kernel) -> Contraction:
    assert isinstance(kernel.root, Contraction)
    return kernel.root
