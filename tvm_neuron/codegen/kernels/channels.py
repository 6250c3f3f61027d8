"""cut_channels: a kernel over some of its output channels, with those weights and constants alone."""

from collections.abc import Iterator
from dataclasses import replace

from tvm_neuron.schedule.expr import Axis, Expr, Index, Load, Num, axes_of, loads, rewrite
from tvm_neuron.schedule.graph import linear_indices
from tvm_neuron.schedule.kernel import Contraction, Gather, Kernel, Operand, Product, Reduction, Transposition
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import PARTITIONS


def cut_channels(kernel: Kernel, count: int) -> Iterator[Kernel]:
    """The kernel in `count` parts at most, of whole chunks of partitions each; as it is where that can't be had."""
    chunks, rest = divmod(kernel.channel.extent, PARTITIONS)
    if not isinstance(kernel.root, Contraction) or rest or min(count, chunks) < 2 or not has_plain_constants(kernel):
        yield kernel
        return
    size = -(-chunks // count) * PARTITIONS
    for low in range(0, kernel.channel.extent, size):
        yield channels_of(kernel, low, min(size, kernel.channel.extent - low))


def has_plain_constants(kernel: Kernel, row: Axis | None = None) -> bool:
    """Whether constants along the channels are vectors over just these; and whether none changes along `row`."""
    changing = {kernel.channel, row}
    constants = [load for load in loads(kernel.expr) if load.tensor.value is not None]
    return all(load.indices == (Index(kernel.channel),) or not changing & set(axes_of(load)) for load in constants)


def channels_of(kernel: Kernel, low: int, count: int) -> Kernel:
    """The kernel over `count` of its output channels from `low` on; constants are plain."""
    channel = Axis(kernel.channel.name, count)

    def moved(found: Linear) -> Linear:
        return found.replaced(kernel.channel, Linear(low, {channel: 1}))

    def leaf(part: Num | Index | Load) -> Expr:
        if not isinstance(part, Load) or kernel.channel not in set(axes_of(part)):
            return part
        value = part.tensor.value
        if value is None:
            return Load(part.tensor, tuple(moved(m).expr() for m in linear_indices(part.indices) or ()))
        vector = Tensor(part.tensor.name, (count,), part.tensor.dtype, value=value[low : low + count])
        return Load(vector, (Index(channel),))

    def operand(found: Operand) -> Operand:
        return Operand(found.tensor, tuple(map(moved, found.maps)))

    maps = tuple(map(moved, kernel.out_maps))
    root = kernel.root
    if isinstance(root, Contraction):
        root = replace(root, weights=root.weights[..., low : low + count])
    elif isinstance(root, Product):
        root = replace(root, stationary=operand(root.stationary))
    elif isinstance(root, Transposition):
        root = replace(root, source=operand(root.source))
    elif isinstance(root, Reduction):
        root = root.reading(leaf)
    elif isinstance(root, Gather):
        root = replace(root, data=operand(root.data), positions=operand(root.positions))
    return replace(kernel, channel=channel, out_maps=maps, expr=rewrite(kernel.expr, leaf), root=root)
