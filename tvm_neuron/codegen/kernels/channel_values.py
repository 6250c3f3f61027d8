"""channel_values: tensors of one value for each channel, beside images of which rows are folded onto the partitions.

Squeeze-and-excite takes the mean of each channel, computes factors from these, and multiplies. Where 4 rows of an image
lie side by side, its sums come out in 4 parts, which the next contraction adds up, since its weights are there 4 times;
and the last contraction computes each factor 4 times, once for each row. Both cost the array nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.codegen.kernels.channels import has_plain_constants
from tvm_neuron.codegen.kernels.folds import Fold
from tvm_neuron.schedule.expr import Apply, Axis, Expr, Index, Load, Num, rewrite
from tvm_neuron.schedule.graph import linear_indices
from tvm_neuron.schedule.kernel import ROOT, Contraction, Kernel, Reduction
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.uses import readers_of, writers_of

Order = NDArray[np.intp]  # for each channel of the folded tensor, that of the tensor before


def channel_values(kernels: Sequence[Kernel], partition_of: Mapping[Tensor, int]) -> set[Tensor]:
    """Sums over images that only a contraction reads, and factors for images that a contraction computes."""
    writers = writers_of(kernels)
    pairs = {t: (writers.get(t, []), its) for t, its in readers_of(kernels).items() if t.kind == "temp"}
    return {
        tensor
        for tensor, (made, read) in pairs.items()
        if len(made) == len(read) == 1
        and partition_of[tensor] == 1
        and len(tensor.shape) == 4
        and tensor.shape[2:] == (1, 1)
        and made[0].out_maps[1] == Linear(0, {made[0].channel: 1})
        and made[0].channel.extent == tensor.shape[1]
        and (_is_sum(tensor, made[0], read[0]) or _is_factor(tensor, made[0], read[0]))
    }


def _is_sum(tensor: Tensor, writer: Kernel, reader: Kernel) -> bool:
    """Whether parts of it may take its place, which the reader adds up."""
    is_plain = writer.expr is ROOT or (
        isinstance(writer.expr, Apply)
        and writer.expr.op == "multiply"
        and writer.expr.args[0] is ROOT
        and isinstance(writer.expr.args[1], Num)
    )
    root = reader.root
    is_read = isinstance(root, Contraction) and root.data is tensor and root.maps[1] == Linear(0)
    if not is_read or not isinstance(root, Contraction) or root.weights.shape[0] != tensor.shape[1]:
        return False
    is_root_alone = all(load.tensor is not tensor for load in reader.operand_loads())
    return isinstance(writer.root, Reduction) and writer.root.combine == "add" and is_plain and is_root_alone


def _is_factor(tensor: Tensor, writer: Kernel, reader: Kernel) -> bool:
    """Whether a contraction computes it, and arithmetic reads it channel by channel."""
    if not isinstance(writer.root, Contraction) or any(writer.operand_loads()) or not has_plain_constants(writer):
        return False
    loads = [load for load in reader.operand_loads() if load.tensor is tensor]
    return (
        tensor not in reader.multiplied()
        and reader.channel.extent == tensor.shape[1]
        and bool(loads)
        and all(_of_channel(load, reader) for load in loads)
    )


def _of_channel(load: Load, kernel: Kernel) -> bool:
    maps = linear_indices(load.indices)
    return maps is not None and maps[1] == Linear(0, {kernel.channel: 1}) and not maps[2].terms and not maps[3].terms


def sum_row(kernel: Kernel, along: int) -> Axis | None:
    """The axis along that dimension of the image that a reduction sums, channel by channel; None for other kernels."""
    root = kernel.root
    maps = linear_indices(root.load.indices) if isinstance(root, Reduction) else None
    if not isinstance(root, Reduction) or maps is None or len(maps) != 4 or len(maps[along].terms) != 1:
        return None
    ((row, step),) = maps[along].terms.items()
    is_alone = step == 1 and row in root.axes and all(row not in maps[d].terms for d in range(4) if d != along)
    return row if is_alone and maps[1] == Linear(0, {kernel.channel: 1}) else None


def folded_value(tensor: Tensor, order: Order) -> Tensor:
    """The tensor with a value for each channel of the folded images."""
    return Tensor(f"{tensor.name}.folded", (tensor.shape[0], len(order), 1, 1), tensor.dtype)


def sums_of_folded(kernel: Kernel, image: Tensor, fold: Fold, out: Tensor) -> Kernel:
    """The reduction over the folded image; a channel's sum comes out in as many parts as rows are folded."""
    root, row = kernel.root, sum_row(kernel, fold.along)
    assert isinstance(root, Reduction)
    assert row is not None
    channel, new_row = Axis(kernel.channel.name, out.shape[1]), Axis(row.name, row.extent // fold.by, True)
    maps = list(linear_indices(root.load.indices) or ())
    maps[1], maps[fold.along] = Linear(0, {channel: 1}), Linear(fold.top, {new_row: 1})
    load = Load(image, tuple(part.expr() for part in maps))
    axes = tuple(new_row if axis is row else axis for axis in root.axes)
    return replace(_writing(kernel, out, channel), root=replace(root, load=load, axes=axes))


def reading_parts(kernel: Kernel, order: Order, parts: Tensor) -> Kernel:
    """The contraction of sums that come in parts: with its weights for each of them."""
    root = kernel.root
    assert isinstance(root, Contraction)
    repeats = root.repeats * len(order) // root.weights.shape[0]
    return replace(kernel, root=replace(root, data=parts, weights=root.weights[order], repeats=repeats))


def repeating(kernel: Kernel, order: Order, out: Tensor) -> Kernel:
    """The contraction that computes each factor for each channel of the folded image."""
    root = kernel.root
    assert isinstance(root, Contraction)
    channel = Axis(kernel.channel.name, len(order))

    def leaf(part: Num | Index | Load) -> Expr:
        if not isinstance(part, Load) or part.indices != (Index(kernel.channel),):
            return part
        assert part.tensor.value is not None
        return Load(replace(part.tensor, shape=order.shape, value=part.tensor.value[order]), (Index(channel),))

    repeats = root.repeats * len(order) // root.weights.shape[-1]
    root = replace(root, weights=root.weights[..., order], repeats=repeats)
    return replace(_writing(kernel, out, channel), expr=rewrite(kernel.expr, leaf), root=root)


def _writing(kernel: Kernel, out: Tensor, channel: Axis) -> Kernel:
    maps = (kernel.out_maps[0], Linear(0, {channel: 1}), *kernel.out_maps[2:])
    return replace(kernel, out=out, out_maps=maps, channel=channel)
