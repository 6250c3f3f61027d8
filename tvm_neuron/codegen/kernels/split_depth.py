"""split_depth: a contraction too deep for its weights to lie in SBUF at once becomes several that add up."""

from dataclasses import replace
from math import prod

from tvm_neuron.hw import Device
from tvm_neuron.isa.dtypes import size_bytes
from tvm_neuron.schedule.expr import Apply, Axis, Expr, Index, Load, Num, rewrite
from tvm_neuron.schedule.kernel import ROOT, Contraction, Kernel
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import PARTITIONS


def split_depth(
    kernels: list[Kernel], partition_of: dict[Tensor, int], device: Device, capacity: int
) -> list[Kernel]:
    """The kernels; where one tile's weights exceed `capacity` bytes of a partition, a chain of partial sums."""
    found: list[Kernel] = []
    for kernel in kernels:
        if isinstance(kernel.root, Contraction):
            columns = min(device.pe_columns, kernel.root.weights.shape[-1])
            parts = _parts(kernel.root, partition_of[kernel.root.data], columns, capacity)
            found += _chain(kernel, parts, partition_of)
        else:
            found.append(kernel)
    return found


def _parts(root: Contraction, dim: int, columns: int, capacity: int) -> list[Contraction]:
    """The contraction in parts of which each fits: halves of the channels first, then of the longest window axis."""
    depth = -(-(root.maps[dim].const % PARTITIONS + root.most_depth(columns)) // PARTITIONS)
    steps = prod(axis.extent for axis in root.steps)
    if depth * steps * columns * size_bytes(root.dtype) <= capacity or depth == steps == 1:
        return [root]
    halves = _halve_channels(root, dim, depth) if depth > 1 else _halve_steps(root)
    return [part for half in halves for part in _parts(half, dim, columns, capacity)]


def _halve_channels(root: Contraction, dim: int, depth: int) -> list[Contraction]:
    first = root.maps[dim].const
    cut = depth // 2 * PARTITIONS - first % PARTITIONS
    maps = tuple(Linear(first + cut) if d == dim else m for d, m in enumerate(root.maps))
    return [replace(root, weights=root.weights[:cut]), replace(root, maps=maps, weights=root.weights[cut:])]


def _halve_steps(root: Contraction) -> list[Contraction]:
    longest = max(root.steps, key=lambda axis: axis.extent)
    at = root.steps.index(longest)
    found = []
    for low, high in ((0, longest.extent // 2), (longest.extent // 2, longest.extent)):
        axis = Axis(longest.name, high - low, True)
        maps = tuple(
            Linear(m.const + m.terms.get(longest, 0) * low, {axis if a is longest else a: s for a, s in terms})
            for m in root.maps
            for terms in [m.terms.items()]
        )
        index = (slice(None),) * (1 + at) + (slice(low, high),)
        steps = tuple(axis if a is longest else a for a in root.steps)
        found.append(replace(root, maps=maps, steps=steps, weights=root.weights[index]))
    return found


def _chain(kernel: Kernel, parts: list[Contraction], partition_of: dict[Tensor, int]) -> list[Kernel]:
    """Each part adds what the parts before it made; the last goes on into the kernel's expression."""
    found: list[Kernel] = []
    total: Expr = ROOT
    axes = (kernel.channel, *kernel.free)
    index = tuple(Index(axis) for axis in axes)
    for number, part in enumerate(parts[:-1]):
        partial = Tensor(f"{kernel.out.name}.part{number}", tuple(axis.extent for axis in axes), "float32")
        partition_of[partial] = 0
        maps = tuple(Linear(0, {axis: 1} if axis.extent > 1 else {}) for axis in axes)
        found.append(replace(kernel, out=partial, out_maps=maps, expr=total, root=part))
        total = Apply("add", (ROOT, Load(partial, index)))

    def leaf(expr: Num | Index | Load) -> Expr:
        return total if expr is ROOT else expr

    return [*found, replace(kernel, expr=rewrite(kernel.expr, leaf), root=parts[-1])]
