"""weights_as_moving: what is multiplied by weights and then transposed comes out of the PE array as it is to lie.

Weights as the stationary operand leave their own channels on the partitions. Logits are stored row by row, and a
product with attention reads its values so: the array would turn them around, and ACT bring them out of PSUM twice.
With data as the stationary operand, weights move along the rows, which come out at once. A bias is no longer one
number for a partition then; the array adds it, too, as products of ones with its parts.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.allocation.layouts import aligned
from tvm_neuron.codegen.kernels.channels_of_ones import channel_vector, in_parts
from tvm_neuron.codegen.overlap.work import work_of
from tvm_neuron.codegen.steps import Alternative
from tvm_neuron.hw import Device
from tvm_neuron.isa.dtypes import size_bytes
from tvm_neuron.schedule.expr import Apply, Axis
from tvm_neuron.schedule.kernel import ROOT, Contraction, Kernel, Operand, Product, Transposition
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.uses import readers_of, writers_of

WEIGHTS_AS_MOVING = Alternative("weights_as_moving", "dtypes are chosen, and no kernel is cut yet")
_SHARE = 16  # 1 / this of SBUF at most for the weights of a kernel, which lie there as a whole


def weights_as_moving(kernels: list[Kernel], partition_of: dict[Tensor, int], device: Device) -> list[Kernel]:
    """The kernels with one in the place of each such pair, where that keeps engines for less time."""
    readers, writers = readers_of(kernels), writers_of(kernels)
    turned: dict[Kernel, Kernel] = {}
    gone: set[Kernel] = set()
    for first in kernels:
        its = readers.get(first.out, [])
        if len(its) != 1 or len(writers[first.out]) != 1 or not _is_plain(first, partition_of, device):
            continue
        made = _at_once(first, its[0], partition_of)
        if made is not None and _is_quicker(made, first, its[0], device):
            assert isinstance(made.root, Product)
            partition_of[made.root.moving.tensor] = 0
            turned[its[0]] = made
            gone.add(first)
    return [turned.get(kernel, kernel) for kernel in kernels if kernel not in gone]


def _is_plain(kernel: Kernel, partition_of: dict[Tensor, int], device: Device) -> bool:
    """Whether it multiplies by weights that may lie in SBUF as a whole, and leaves the result there."""
    root = kernel.root
    if not isinstance(root, Contraction) or root.steps or root.side or root.scale or root.has_zeros:
        return False
    depth, columns = root.weights.shape
    size = -(-depth // device.partitions) * columns * size_bytes(root.dtype)
    if size * _SHARE > device.sbuf_bytes_per_partition or root.maps[partition_of[root.data]] != Linear(0):
        return False
    return kernel.out.kind == "temp" and not kernel.out.is_spread and root.repeats == 1


def _at_once(first: Kernel, second: Kernel, partition_of: dict[Tensor, int]) -> Kernel | None:
    """What the second makes of the first; None if it is no transposition, or of rows that are mixed."""
    root, turn = first.root, second.root
    if not isinstance(root, Contraction) or not isinstance(turn, Transposition):
        return None
    if turn.source.tensor is not first.out or any(load.tensor is first.out for load in second.operand_loads()):
        return None
    by: dict[Axis, Linear] = {}
    for place, read in zip(first.out_maps, turn.source.maps, strict=True):
        if place.const or len(place.terms) > 1 or any(step != 1 for step in place.terms.values()):
            return None
        by |= dict.fromkeys(place.terms, read)
    channel, depth = by.get(first.channel), Axis("k", root.weights.shape[0], True)
    if channel is None or len(by) != len({first.channel, *first.free}):
        return None
    part = partition_of[root.data]
    maps = tuple(Linear(0, {depth: 1}) if d == part else _moved(m, by) for d, m in enumerate(root.maps))
    rows = {axis for m in maps for axis in m.terms}
    if second.channel not in rows or rows & set(channel.terms):
        return None
    bias = _bias(first)
    if first.expr is not ROOT and (bias is None or in_parts(bias, root.dtype) is None):
        return None
    weights = Tensor(f"{first.origins[0].name}.weights", root.weights.shape, "float32", value=root.weights)
    operands = Operand(root.data, maps), Operand(weights, (Linear(0, {depth: 1}), channel))
    return replace(
        second, origins=tuple(dict.fromkeys((*first.origins, *second.origins))),
        root=Product(*operands, depth, (), root.dtype, bias=bias),
    )  # fmt: skip


def _bias(kernel: Kernel) -> NDArray[np.float32] | None:
    """What it adds to each channel, if it does nothing else with the product."""
    match kernel.expr:
        case Apply("add", (left, right)) if left is ROOT:
            return channel_vector(right, kernel.channel)
    return None


def _moved(part: Linear, by: dict[Axis, Linear]) -> Linear:
    for axis, read in by.items():
        part = part.replaced(axis, read)
    return part


def _is_quicker(made: Kernel, first: Kernel, second: Kernel, device: Device) -> bool:
    """Whether it keeps engines for less time, where the array has rows enough for one matmul not to be too short."""
    work = [sum(work_of(kernel, device).values()) for kernel in (made, first, second)]
    return second.channel.extent * 2 >= device.matmul_min_cycles and work[0] < work[1] + work[2]


def moving_bytes(kernel: Kernel, device: Device) -> int:
    """Of each partition, for weights that a product moves along rows, its bias and ones for it; 0 where it has none."""
    root = kernel.root
    if not isinstance(root, Product) or root.moving.tensor.value is None:
        return 0
    depth, columns = root.moving.tensor.shape
    biases = aligned(size_bytes(root.dtype) * columns) + size_bytes(root.dtype) * device.partitions
    found = -(-depth // device.partitions) * columns * size_bytes(root.dtype)
    return found if root.bias is None else aligned(found) + biases
