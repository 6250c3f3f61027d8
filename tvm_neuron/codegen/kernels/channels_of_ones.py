"""channels_of_ones: tensors with further channels that are 1, whose weights are then added to a product.

They lie on partitions that the tensor leaves free, and what writes the tensor writes them at no cost: output channels
whose weights are zero. Where another tensor is added on the way, its ones are theirs.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.codegen.tiles.restrict import Rows, restrict
from tvm_neuron.hw import Device
from tvm_neuron.isa.dtypes import DTYPES
from tvm_neuron.schedule.expr import Apply, Axis, Expr, Index, Load, Num, replace_axes
from tvm_neuron.schedule.graph import linear_indices
from tvm_neuron.schedule.kernel import ROOT, Contraction, Kernel
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import PARTITIONS
from tvm_neuron.schedule.uses import writers_of

ONES = 3  # bfloat16 has 8 significant bits, float32 24


def in_parts(bias: NDArray[np.float32], dtype: str) -> NDArray[np.float32] | None:
    """[ONES, M] numbers of the dtype that add up to the bias; None if none do."""
    found, rest = [], bias
    with np.errstate(over="ignore", invalid="ignore"):  # what float16 does not hold leaves infinity or NaN
        for _ in range(ONES):
            found.append(rest.astype(DTYPES[dtype]).astype(np.float32))
            rest = rest - found[-1]
    return np.stack(found) if np.all(rest == 0) else None


def channel_vector(expr: Expr, channel: Axis) -> NDArray[np.float32] | None:
    """A constant's value for each channel."""
    if isinstance(expr, Num):
        return np.full(channel.extent, expr.value, np.float32)
    if isinstance(expr, Load) and expr.tensor.value is not None and expr.indices == (Index(channel),):
        return expr.tensor.value.astype(np.float32)
    return None


def possible_ones(
    kernels: Sequence[Kernel], partition_of: Mapping[Tensor, int], device: Device
) -> dict[Tensor, Sequence[Tensor]]:
    """The tensors that can have channels of ones; with each those that are added to it, which then have them too."""
    refused: set[Tensor] = set()
    for kernel in kernels:
        plain = {load.tensor for load in kernel.operand_loads()}
        plain |= {kernel.root.data} if isinstance(kernel.root, Contraction) else set()
        refused |= set(kernel.sources()) - (set() if kernel.by_dma else plain)
    found: dict[Tensor, Sequence[Tensor]] = {}
    for tensor, its in writers_of(kernels).items():
        added = _added(its[0], partition_of, device) if len(its) == 1 and tensor not in refused else None
        if added is not None:
            found[tensor] = added
    while lost := [tensor for tensor, added in found.items() if not found.keys() >= set(added)]:
        found = {tensor: added for tensor, added in found.items() if tensor not in lost}
    return found


def _added(kernel: Kernel, partition_of: Mapping[Tensor, int], device: Device) -> Sequence[Tensor] | None:
    """What the kernel adds to its product and a bias, if it writes all channels and has room for some more."""
    root, out, extent = kernel.root, kernel.out, kernel.channel.extent
    dim, whole = partition_of[out], Linear(0, {kernel.channel: 1})
    if not isinstance(root, Contraction) or root.side or out.kind != "temp" or out.is_spread:
        return None
    if kernel.out_maps[dim] != whole or out.shape[dim] != extent or not 0 < extent % PARTITIONS <= PARTITIONS - ONES:
        return None
    if -(-extent // device.pe_columns) < -(-(extent + ONES) // device.pe_columns):
        return None
    added: list[Tensor] = []
    terms = Counter[str]()
    for term in _terms(kernel.expr):
        if term is ROOT or channel_vector(term, kernel.channel) is not None:
            terms["root" if term is ROOT else "bias"] += 1
            continue
        maps = linear_indices(term.indices) if isinstance(term, Load) else None
        if maps is None or not isinstance(term, Load) or partition_of.get(term.tensor) != dim:
            return None
        if term.tensor.shape != out.shape or maps[dim] != whole:
            return None
        added.append(term.tensor)
    return added if terms == {"root": 1, "bias": 1} else None


def _terms(expr: Expr) -> Iterator[Expr]:
    """Of what the expression is the sum."""
    if isinstance(expr, Apply) and expr.op == "add":
        for arg in expr.args:
            yield from _terms(arg)
    else:
        yield expr


def widen(
    tensor: Tensor, added: Mapping[Tensor, Sequence[Tensor]], wide: dict[Tensor, Rows], partition_of: dict[Tensor, int]
) -> None:
    """Gives the tensor channels of ones, and so all that is added to it."""
    if tensor in wide:
        return
    dim = partition_of[tensor]
    shape = tuple(extent + ONES if d == dim else extent for d, extent in enumerate(tensor.shape))
    wide[tensor] = Rows(Tensor(f"{tensor.name}.ones", shape, tensor.dtype), dim, 0)
    partition_of[wide[tensor].tensor] = dim
    for other in added[tensor]:
        widen(other, added, wide, partition_of)


def on_wide(kernel: Kernel, wide: Mapping[Tensor, Rows], partition_of: Mapping[Tensor, int]) -> Kernel:
    """The kernel on tensors with ones instead of those without; it writes the ones as well."""
    if kernel.out in wide:
        kernel = _with_ones(kernel, wide[kernel.out].dim)
    return restrict(kernel, None, 0, 0, wide) if any(tensor in wide for tensor in kernel.tensors) else kernel


def _with_ones(kernel: Kernel, dim: int) -> Kernel:
    """The kernel with further channels, of which weights are 0 and the result is 1."""
    root, old = kernel.root, kernel.channel
    assert isinstance(root, Contraction)
    channel = Axis(old.name, old.extent + ONES)
    operands = sum(1 for _ in kernel.operand_loads())  # which are 1 there

    def extended(expr: Expr) -> Expr:
        if isinstance(expr, Apply) and expr.op == "add":
            return Apply("add", tuple(map(extended, expr.args)))
        vector = None if expr is ROOT else channel_vector(expr, old)
        if vector is None:
            return replace_axes(expr, {old: Index(channel)})
        value = np.concatenate([vector, np.full(ONES, 1 - operands, np.float32)])
        return Load(Tensor("vector", value.shape, "float32", value=value), (Index(channel),))

    weights = np.zeros((*root.weights.shape[:-1], channel.extent), root.weights.dtype)
    weights[..., : old.extent] = root.weights
    out_maps = tuple(Linear(0, {channel: 1}) if d == dim else found for d, found in enumerate(kernel.out_maps))
    return replace(
        kernel, channel=channel, out_maps=out_maps, expr=extended(kernel.expr), root=replace(root, weights=weights)
    )
