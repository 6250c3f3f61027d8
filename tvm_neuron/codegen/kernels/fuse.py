"""fuse: arithmetic with one reader moves into the kernel that feeds it, so that results leave PSUM once."""

from collections.abc import Mapping
from dataclasses import replace

from tvm_neuron.schedule.expr import Apply, Axis, Expr, Index, Load, Num, loads, replace_axes, rewrite
from tvm_neuron.schedule.graph import linear_indices
from tvm_neuron.schedule.kernel import ACCUMULATOR, Kernel, Scan, is_read_backward
from tvm_neuron.schedule.linear import Linear, counts
from tvm_neuron.schedule.tensor import Tensor, is_rounded
from tvm_neuron.schedule.tiling import PARTITIONS
from tvm_neuron.schedule.uses import readers_of, writers_of

_MOST_OPERANDS = 8  # of a joined kernel: each takes temporaries, for which all kernels share one scratch zone
MOST_VALUES = 10  # that a joined kernel computes: likewise; one operator may take more where the device has room


def fuse(kernels: list[Kernel]) -> list[Kernel]:
    """The kernels with every elementwise kernel joined to the one whose result only it reads.

    What has two readers may have one when those are joined, so that it takes several rounds.
    """
    while True:
        joined = _fuse_once(kernels)
        if len(joined) == len(kernels):
            return joined
        kernels = joined


def _fuse_once(kernels: list[Kernel]) -> list[Kernel]:
    writers, readers = writers_of(kernels), readers_of(kernels)
    current: dict[Kernel, Kernel] = {}
    gone: set[Kernel] = set()
    for kernel in kernels:
        here = kernel
        for tensor in dict.fromkeys(load.tensor for load in kernel.operand_loads()):
            made = writers.get(tensor, [])
            if len(made) != 1 or len(readers[tensor]) != 1 or tensor.kind != "temp" or made[0] in gone:
                continue
            joined = _join(current[made[0]], here, tensor)
            if joined is not None:
                gone.add(made[0])
                here = joined
        current[kernel] = here
    return [current[kernel] for kernel in kernels if kernel not in gone]


def _join(first: Kernel, second: Kernel, tensor: Tensor) -> Kernel | None:
    """`first`, which makes `tensor`, with the arithmetic of `second` appended.

    None where their loops differ, or where both together read too many tensors.
    """
    if second.root is not None or second.by_dma or first.by_dma:
        return None
    if isinstance(first.root, Scan):
        return None  # which writes what it goes on from
    if tensor.is_spread and not second.out.is_spread and first.channel.extent > PARTITIONS:
        return None  # which would make for every chunk what is the same for all
    if second.out in first.sources():
        return None  # a kernel reads no part of what it writes
    if first.root is None and any(load.tensor is ACCUMULATOR for load in second.operand_loads()):
        return None
    if is_rounded(first.sources(), tensor, second.out):
        return None
    if first.root is not None and (second.stepped or any(is_read_backward(second, axis) for axis in second.free)):
        return None  # such an end takes one value of these axes at a time
    found = [load for load in second.operand_loads() if load.tensor is tensor]
    axes = [_axis_map(first, second, load) for load in found]
    if not axes or axes[0] is None or any(other != axes[0] for other in axes):
        return None
    renamed = replace_axes(second.expr, {axis: to.index() for axis, to in axes[0].items()})
    if len(computed(first.expr) | computed(renamed)) > MOST_VALUES:
        return None  # told before they are one expression, which repeats the first one's terms for every load

    def leaf(part: Num | Index | Load) -> Expr:
        return first.expr if isinstance(part, Load) and part.tensor is tensor else part

    expr = rewrite(renamed, leaf)
    maps = tuple(_renamed(m, axes[0]) for m in second.out_maps)
    origins = (*first.origins, *(origin for origin in second.origins if origin not in first.origins))
    joined = replace(first, origins=origins, out=second.out, out_maps=maps, expr=expr)
    return joined if len({load.tensor for load in joined.operand_loads()}) <= _MOST_OPERANDS else None


def computed(expr: Expr) -> set[Expr]:
    """The different values on the way to the result that depend on data."""
    if not isinstance(expr, Apply) or not any(True for _ in loads(expr)):
        return set()
    return {expr}.union(*map(computed, expr.args))


def _axis_map(first: Kernel, second: Kernel, load: Load) -> dict[Axis, Linear] | None:
    """What each axis of `second` is in those of `first`, where every element is read just as it was written.

    A free axis may be several of `first` that count it: heads, say, that share keys and values group by group. Not the
    innermost one, of which pieces are short, nor for long arithmetic: these take less time for all of it at once.
    """
    whole = {second.channel, *second.free[-1:]} if len(computed(second.expr)) == 1 else {second.channel, *second.free}
    maps = linear_indices(load.indices)
    if maps is None or len(maps) != len(first.out_maps):
        return None
    by: dict[Axis, Linear] = {}
    for read, written in zip(maps, first.out_maps, strict=True):
        if read.const != written.const or bool(read.terms) != bool(written.terms):
            return None
        if len(read.terms) > 1:  # each axis of the reader is one of the writer
            same = {(to.extent, step): to for to, step in written.terms.items()}
            pairs = [(axis, same.get((axis.extent, step))) for axis, step in read.terms.items()]
            if len(written.terms) != len(pairs) or any(to is None for _, to in pairs):
                return None
            by |= {axis: Linear(0, {to: 1}) for axis, to in pairs if to}
            continue
        for axis, step in read.terms.items():
            if step != 1 or counts(written.terms) != axis.extent:
                return None
            if len(written.terms) > 1 and (axis in whole or first.channel in written.terms):
                return None
            by[axis] = Linear(0, written.terms)
    mine = {axis for axis in (second.channel, *second.free) if axis.extent > 1}
    theirs = {axis for axis in (first.channel, *first.free) if axis.extent > 1}
    return by if set(by) == mine and {axis for to in by.values() for axis in to.terms} == theirs else None


def _renamed(part: Linear, by: Mapping[Axis, Linear]) -> Linear:
    total = Linear(part.const)
    for axis, step in part.terms.items():
        total += by.get(axis, Linear(0, {axis: 1})).scaled(step)
    return total
