"""apply_folds: the kernels once tensors have several rows, or squares of pixels, on the partitions."""

from collections.abc import Container, Mapping, Sequence

from tvm_neuron.allocation.regions import Box, box, joined, overlaps, whole
from tvm_neuron.codegen.kernels.bring_in import border, fill
from tvm_neuron.codegen.kernels.channel_values import (
    Order,
    channel_values,
    folded_value,
    reading_parts,
    repeating,
)
from tvm_neuron.codegen.kernels.folds import Fold, Room
from tvm_neuron.codegen.kernels.rewrite_folded import fills_of_folded, rewrite_folded, stores_of_folded
from tvm_neuron.codegen.kernels.row_axes import COLUMNS, is_fill, is_store
from tvm_neuron.codegen.kernels.row_folds import common_folds, possible_folds
from tvm_neuron.schedule.kernel import Contraction, Kernel, Reduction
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import PARTITIONS

_COLUMNS_OF_SQUARES = Room(COLUMNS, PARTITIONS, 2, True)


def apply_folds(
    possible: Mapping[Tensor, Fold], kernels: list[Kernel], partition_of: Mapping[Tensor, int]
) -> tuple[list[Kernel], dict[Tensor, int]]:
    """The kernels on tensors folded so, and then along columns where partitions are kept free for these.

    And the partition dimension of each folded tensor.
    """
    values = channel_values(kernels, partition_of)
    folds = common_folds(kernels, possible, values)
    found, folded = _with_folds(kernels, folds, values)
    halves = {folded[tensor] for tensor, fold in folds.items() if fold.is_of_squares}
    dims = dict.fromkeys(folded.values(), 1)
    if halves:
        values = channel_values(found, {**partition_of, **dims})
        columns = possible_folds(found, {**partition_of, **dims}, _COLUMNS_OF_SQUARES)
        folds = common_folds(found, {tensor: fold for tensor, fold in columns.items() if tensor in halves}, values)
        found, folded = _with_folds(found, folds, values)
        dims |= dict.fromkeys(folded.values(), 1)
    return found, dims


def _with_folds(
    kernels: list[Kernel], folds: Mapping[Tensor, Fold], values: Container[Tensor]
) -> tuple[list[Kernel], dict[Tensor, Tensor]]:
    """The kernels on folded tensors, and which of these takes the place of each."""
    folded = {tensor: _folded(tensor, fold) for tensor, fold in folds.items()}
    orders = _orders(kernels, folds, values)
    folded |= {tensor: folded_value(tensor, order) for tensor, order in orders.items()}
    found: list[Kernel] = []
    filled: set[Tensor] = set()
    for kernel in kernels:
        if kernel.out in folds and is_fill(kernel):
            if overlaps(box(kernel.out_maps, whole(kernel)), _interior(kernel.out, kernels)):
                found += fills_of_folded(kernel, folds[kernel.out], folded[kernel.out])
            elif kernel.out not in filled:
                filled.add(kernel.out)
                found += _fills(kernel, folds[kernel.out], folded[kernel.out], _interior(kernel.out, kernels))
        elif is_store(kernel) and (image := next(kernel.sources(), kernel.out)) in folds:
            found += stores_of_folded(kernel, folds[image], folded[image])
        else:
            found.append(_on_values(rewrite_folded(kernel, folds, folded), orders, folded))
    return found, folded


def _orders(kernels: Sequence[Kernel], folds: Mapping[Tensor, Fold], values: Container[Tensor]) -> dict[Tensor, Order]:
    """The values of each channel that are there as often as the folded images beside them have rows in one."""
    found: dict[Tensor, Order] = {}
    for kernel in kernels:
        if isinstance(kernel.root, Reduction) and kernel.root.load.tensor in folds:
            found[kernel.out] = folds[kernel.root.load.tensor].order
        elif kernel.out in folds:
            loads = [load.tensor for load in kernel.operand_loads() if load.tensor in values]
            found |= dict.fromkeys(loads, folds[kernel.out].order)
    return found


def _on_values(kernel: Kernel, orders: Mapping[Tensor, Order], folded: Mapping[Tensor, Tensor]) -> Kernel:
    """A contraction that adds up parts of sums, or computes factors more than once."""
    root = kernel.root
    if isinstance(root, Contraction) and root.data in orders:
        kernel = reading_parts(kernel, orders[root.data], folded[root.data])
    if isinstance(root, Contraction) and kernel.out in orders:
        kernel = repeating(kernel, orders[kernel.out], folded[kernel.out])
    return kernel


def _folded(tensor: Tensor, fold: Fold) -> Tensor:
    shape = list(tensor.shape)
    below = shape[fold.along] - fold.first - fold.rows
    shape[1] *= fold.by
    shape[fold.along] = -(-fold.first // fold.by) + fold.rows // fold.by + -(-below // fold.by)
    return Tensor(f"{tensor.name}.folded", tuple(shape), tensor.dtype)


def _interior(tensor: Tensor, kernels: Sequence[Kernel]) -> Box:
    """What is written that is not padding."""
    writers = [kernel for kernel in kernels if kernel.out is tensor and not is_fill(kernel)]
    return joined([box(kernel.out_maps, whole(kernel)) for kernel in writers])


def _fills(kernel: Kernel, fold: Fold, folded: Tensor, interior: Box) -> list[Kernel]:
    """The padding around the rows and columns that others write."""
    top = fold.top
    inside = [(low, low + extent) for low, extent in zip(*interior, strict=True)]
    inside[1], inside[fold.along] = (0, folded.shape[1]), (top, top + fold.rows // fold.by)
    return [fill(folded, kernel, 1, outside, kernel.expr) for outside in border(folded.shape, 1, inside)]
