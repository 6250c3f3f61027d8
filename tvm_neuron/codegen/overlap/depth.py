"""cut_depth: a contraction over many channels as several over some of them, which add to one float32 tensor."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tvm_neuron.allocation.layouts import bytes_on_chip
from tvm_neuron.schedule.expr import Apply, Expr, Index, Load, Num, loads, rewrite
from tvm_neuron.schedule.kernel import ROOT, Contraction, Kernel
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import PARTITIONS

SLICE = 4 * PARTITIONS  # channels that are summed at a time: the array works for long enough on each tile of sums


def cut_depth(kernels: Sequence[Kernel], partition_of: dict[Tensor, int], dtypes: dict[Tensor, str]) -> list[Kernel]:
    """The kernels; a contraction of a tensor that takes far more memory than its sums do reads slices of it in turn.

    The sums are never rounded: they are added up in float32. Adds the tensors of sums to `partition_of` and `dtypes`.
    """
    found: list[Kernel] = []
    readers: dict[Tensor, int] = {}
    for kernel in kernels:
        for tensor in kernel.tensors:
            readers[tensor] = readers.get(tensor, 0) + (tensor is not kernel.out)
    for kernel in kernels:
        if isinstance(kernel.root, Contraction) and readers[kernel.root.data] == 1:
            found += _chain(kernel, kernel.root, partition_of, dtypes)
        else:
            found.append(kernel)
    return found


def _chain(
    kernel: Kernel, root: Contraction, partition_of: dict[Tensor, int], dtypes: dict[Tensor, str]
) -> list[Kernel]:
    """The parts, which add up in place; what the kernel adds to its sums is added by the first of them."""
    dim = partition_of[root.data]
    if root.scale or root.maps[dim].const or not _is_worth_it(kernel, root, partition_of, dtypes):
        return [kernel]
    sums = Tensor(f"{kernel.out.name}.sums", kernel.out.shape, "float32")
    partition_of[sums], dtypes[sums] = partition_of[kernel.out], "float32"
    before = Load(sums, tuple(part.expr() for part in kernel.out_maps))
    total = Apply("add", (ROOT, before))
    first, last = (kernel.expr, total) if _adds_to_root(kernel.expr) else (ROOT, _with_root(kernel.expr, total))
    parts = []
    for low in range(0, root.data.shape[dim], SLICE):
        maps = tuple(Linear(low) if d == dim else m for d, m in enumerate(root.maps))
        part = replace(root, maps=maps, weights=root.weights[low : low + SLICE])
        parts.append(replace(kernel, out=sums, expr=total, root=part))
    parts[0] = replace(parts[0], expr=first)
    parts[-1] = replace(parts[-1], out=kernel.out, expr=last)
    return parts


def _is_worth_it(
    kernel: Kernel, root: Contraction, partition_of: Mapping[Tensor, int], dtypes: Mapping[Tensor, str]
) -> bool:
    """Whether a slice and the sums take less than the whole tensor does."""
    data, dim = root.data, partition_of[root.data]
    if data.kind != "temp" or data.shape[dim] != root.weights.shape[0] or data.shape[dim] % SLICE:
        return False
    whole = bytes_on_chip(dtypes[data], dim, data.shape)
    sums = bytes_on_chip("float32", partition_of[kernel.out], kernel.out.shape)
    return whole * SLICE // data.shape[dim] + sums < whole


def _adds_to_root(expr: Expr) -> bool:
    """Whether the expression is a sum of the root, once, and of other terms."""
    while isinstance(expr, Apply) and expr.op == "add":
        left, right = (any(load is ROOT for load in loads(side)) for side in expr.args)
        if left and right:
            return False
        expr = expr.args[0 if left else 1]
    return expr is ROOT


def _with_root(expr: Expr, root: Expr) -> Expr:
    def leaf(part: Num | Index | Load) -> Expr:
        return root if part is ROOT else part

    return rewrite(expr, leaf)
