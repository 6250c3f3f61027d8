"""Work: the multiply-accumulates that a model's operators ask for, whatever the program does to get them done.

The array also multiplies zeros: a depthwise convolution is a product with diagonal matrices, a packed first layer fills
up its rows, a reduction multiplies by ones. None of that is work; a roofline that counted it would flatter us.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from math import prod

import numpy as np

from tvm_neuron.program import Origin
from tvm_neuron.schedule.expr import Apply, Axis, Load, axes_of, loads
from tvm_neuron.schedule.graph import Block, Graph
from tvm_neuron.schedule.kernel import Contraction, Kernel, Product
from tvm_neuron.schedule.roles import factors


def asked_macs(graph: Graph) -> Mapping[Origin, int]:
    """Multiply-accumulates of each operator as its definition has them, those with padding included.

    What depends on constants alone is computed at compile time and does not count, nor do products with the zeros
    between the data of a transposed convolution.
    """
    elems = {tensor: tensor.elems for tensor in graph.inputs}  # of what is known at run time: all but zeros filled in
    macs = Counter[Origin]()
    for block in graph.blocks:
        if elems.keys().isdisjoint(block.sources()):
            continue
        late = [load for load in block.loads() if load.tensor in elems]
        fills = block.combine == "" and isinstance(block.expr, Apply) and block.expr.op == "select" and len(late) == 1
        elems[block.output] = min(elems[late[0].tensor], block.output.elems) if fills else block.output.elems
        if _sums_products(block):
            macs[block.origin] += min(_macs(block, load, elems[load.tensor]) for load in late)
    return macs


def kernel_macs(kernels: Iterable[Kernel], asked: Mapping[Origin, int]) -> dict[Kernel, float]:
    """Of each sum of products: those with what is not zero, and of an operator no more than it asks for.

    A kernel may do fewer than its operator asks for, where that multiplies by zeros of padding or dilation.
    """
    done: dict[Kernel, int] = {}
    by_origin = Counter[Origin]()
    nonzero: dict[int, int] = {}
    for kernel in kernels:
        free = prod(axis.extent for axis in kernel.free)
        if isinstance(kernel.root, Contraction):
            weights = kernel.root.weights
            free //= kernel.root.side.extent if kernel.root.side else 1
            if id(weights) not in nonzero:
                nonzero[id(weights)] = int(np.count_nonzero(weights))
            done[kernel] = nonzero[id(weights)] * free
        elif isinstance(kernel.root, Product):
            steps = prod(axis.extent for axis in kernel.root.steps)
            done[kernel] = kernel.channel.extent * kernel.root.depth.extent * steps * free
        by_origin[kernel.origins[0]] += done.get(kernel, 0)
    most = {origin: min(count, asked.get(origin, 0)) for origin, count in by_origin.items()}
    return {k: count * most[k.origins[0]] / max(1, by_origin[k.origins[0]]) for k, count in done.items()}


def _sums_products(block: Block) -> bool:
    """Whether it adds up products of two elements, which may be of one tensor; squares, as of differences, are none."""
    parts = set(factors(block.expr))
    return block.combine == "add" and len(parts) > 1 and len({load for part in parts for load in loads(part)}) > 1


def _macs(block: Block, data: Load, elems: int) -> int:
    """Products of the block, or those that `elems` of its data are in, each being in as many as any other, if fewer."""
    products = prod(axis.extent for axis in block.axes)
    own: dict[Axis, int] = {}  # of a dimension that is read in groups, several values of its axis read the same
    for size, index in zip(data.tensor.shape, data.indices, strict=True):
        if axes := set(axes_of(index)):
            axis = max(axes, key=lambda axis: (not axis.is_reduction, axis.extent))
            own[axis] = max(own.get(axis, 1), min(axis.extent, size))
    return min(products, elems * (products // prod(own.values())))
