"""sum_biases: the PE array adds a bias that would cost ACT or POOL a pass of its own.

ReLU6 after a bias takes two instructions on the way out of PSUM, the one for the bias being the first: without it, one
does both bounds. The array adds it for nothing where its rows are not all in use: data of 96 channels get further ones
that are 1, and the weights of these are the bias, cut into numbers of the array's dtype that add up to it exactly. What
writes the data writes these ones as well, as output channels whose weights are zero: engines take no longer for them.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.codegen.kernels.channels_of_ones import channel_vector, in_parts, on_wide, possible_ones, widen
from tvm_neuron.codegen.overlap.work import work_of
from tvm_neuron.codegen.tiles.restrict import Rows
from tvm_neuron.hw import Device
from tvm_neuron.schedule.expr import Apply, Axis, Expr, Num, rewrite_operations
from tvm_neuron.schedule.kernel import ROOT, Contraction, Kernel
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor

_NEAR = 2.0**-21  # float32 has 24 significant bits; as with HardSwish, whose gate adds a number to what has a bias


def sum_biases(kernels: list[Kernel], partition_of: dict[Tensor, int], device: Device) -> list[Kernel]:
    """The kernels, such contractions with their biases among the weights, on data with channels of ones."""
    added = possible_ones(kernels, partition_of, device)
    changed: dict[Kernel, Kernel] = {}
    wide: dict[Tensor, Rows] = {}
    for kernel in kernels:
        root = kernel.root
        if isinstance(root, Contraction) and root.data in added and kernel.out not in added:
            after = biased(kernel, root, partition_of[root.data])
            if after is not None and _passes_ps(after, device) < _passes_ps(kernel, device):
                changed[kernel] = after
                widen(root.data, added, wide, partition_of)
    return [on_wide(changed.get(kernel, kernel), wide, partition_of) for kernel in kernels]


def biased(kernel: Kernel, root: Contraction, dim: int) -> Kernel | None:
    """The kernel with its bias as further rows of its weights."""
    if root.steps or root.side or root.maps[dim] != Linear(0) or root.data.shape[dim] != root.weights.shape[0]:
        return None
    found: list[NDArray[np.float32]] = []  # biases of the root alone
    rest: list[float | None] = []  # what is then still to be added

    def without(expr: Apply) -> Expr:
        parts = _scale_and_bias(expr, kernel.channel)
        if parts is None:
            return expr
        scale, bias = (channel_vector(part, kernel.channel) for part in parts)
        assert scale is not None
        assert bias is not None
        found.append(bias / scale)
        rest.append(_distance(scale * found[0], bias) if len(found) > 1 else 0.0)
        return Apply("add", (expr.args[0], Num(rest[-1]))) if rest[-1] else expr.args[0]

    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # what is no number is not summed up below
        expr = rewrite_operations(kernel.expr, without)
        rows = in_parts(found[0], root.dtype) if found and None not in rest else None
    if rows is None or _bare_roots(kernel.expr, kernel.channel):
        return None
    return replace(kernel, expr=expr, root=replace(root, weights=np.concatenate([root.weights, rows])))


def _distance(first: NDArray[np.float32], second: NDArray[np.float32]) -> float | None:
    """The number by which the second biases are more than the first, but for their rounding; None if there is none."""
    found = float(np.median(second - first))
    rounding = _NEAR * np.maximum(np.abs(first), np.abs(second))
    return found if np.all(np.abs(second - first - found) <= rounding) else None


def _scale_and_bias(expr: Apply, channel: Axis) -> tuple[Expr, Expr] | None:
    """What the root is multiplied by, and what is added to it then, if it is that and nothing else."""
    if expr.op != "add":
        return None
    product, bias = expr.args
    scale: Expr = Num(1.0)
    if isinstance(product, Apply) and product.op == "multiply":
        product, scale = product.args
    vectors = [channel_vector(part, channel) for part in (scale, bias)]
    return (scale, bias) if product is ROOT and all(vector is not None for vector in vectors) else None


def _bare_roots(expr: Expr, channel: Axis) -> bool:
    """Whether the root occurs without a bias, too."""
    if not isinstance(expr, Apply):
        return expr is ROOT
    return _scale_and_bias(expr, channel) is None and any(_bare_roots(arg, channel) for arg in expr.args)


def _passes_ps(kernel: Kernel, device: Device) -> int:
    """How long the way out of PSUM keeps ACT and POOL."""
    work = work_of(kernel, device)
    return work["act"] + work["pool"]
