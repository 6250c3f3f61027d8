"""Other layers: biases, activations, padding, blocks of space, losses."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from tvm import relax

from tvm_neuron.errors import ModelError
from tvm_neuron.relay.ir.ty import TensorType
from tvm_neuron.relay.op.declare import R, Tensor, Types, operator, rank_of_data
from tvm_neuron.relay.op.elementwise import number
from tvm_neuron.relay.op.layouts import relayout
from tvm_neuron.relay.op.norm import _vectors, along
from tvm_neuron.relay.op.reduce import axes_of


@operator("nn.relu")
def relu(data: Tensor) -> Tensor:
    """Each element, at least 0."""
    return R.nn.relu(data)


@operator("nn.leaky_relu")
def leaky_relu(data: Tensor, alpha: float = 0.01) -> Tensor:
    """Each element, those below 0 times `alpha`."""
    return R.nn.leakyrelu(data, alpha)


@operator("nn.prelu", fill=_vectors)
def prelu(data: Tensor, alpha: Tensor, axis: int = 1) -> Tensor:
    """Each element, those below 0 times the slope of their position along `axis`."""
    slopes = along(alpha, data, axes_of(data, axis)[0])
    return R.where(R.less(data, number(0, data)), R.multiply(data, slopes), data)


@operator("nn.bias_add", fill=_vectors)
def bias_add(data: Tensor, bias: Tensor, axis: int = 1) -> Tensor:
    """A vector added along `axis`."""
    at = axes_of(data, axis)[0]
    if int(bias.ty.ndim) != 1:
        raise ValueError(f"the bias is a vector, not a tensor of {int(bias.ty.ndim)} dimensions")
    return R.add(data, along(bias, data, at))


@operator("nn.batch_flatten")
def batch_flatten(data: Tensor) -> Tensor:
    """All dimensions but the first as one."""
    shape = list(data.ty.shape)
    rest = shape[1]
    for dim in shape[2:]:
        rest = rest * dim
    return R.reshape(data, [shape[0], rest])


@operator("nn.dropout", outputs=None)
def dropout(data: Tensor, rate: float = 0.5) -> Tensor:
    """The same values: nothing is dropped in inference."""
    return data


@operator("nn.pad", tensors=("pad_value",), ranks=rank_of_data)
def pad(
    data: Tensor, pad_width: Sequence[Sequence[int]], pad_value: Any = 0, pad_mode: str = "constant"
) -> Tensor:
    """Elements before and after each dimension: of one value, copies of the edge, or mirrored about it.

    Numbers below 0 cut elements off.
    """
    widths = [(each, each) if isinstance(each, int) else tuple(each) for each in pad_width]
    data, widths = _cut_off(data, widths)
    if pad_mode == "constant":
        flat = [count for pair in widths for count in pair]
        if not isinstance(pad_value, relax.Expr):
            return R.nn.pad(data, flat, "constant", float(np.asarray(pad_value).item()))
        inside = R.nn.pad(R.ones_like(data, "bool"), flat, "constant", 0)
        value = R.astype(R.reshape(pad_value, []), str(data.ty.dtype))
        return R.where(inside, R.nn.pad(data, flat, "constant", 0), value)
    if pad_mode not in ("edge", "reflect"):
        raise ModelError(f"nn.pad: pad_mode is '{pad_mode}'; there are constant, edge and reflect")
    return _by_position(data, widths, pad_mode)


@operator("nn.mirror_pad")
def mirror_pad(data: Tensor, pad_width: Sequence[Sequence[int]], mode: str = "SYMMETRIC") -> Tensor:
    """Elements mirrored about the edge, the edge itself again (SYMMETRIC) or not (REFLECT)."""
    return _by_position(data, [tuple(pair) for pair in pad_width], {"SYMMETRIC": "symmetric"}.get(mode, "reflect"))


def _cut_off(data: Any, widths: list[tuple[int, ...]]) -> tuple[Any, list[tuple[int, ...]]]:
    """Without what numbers below 0 cut off, and the numbers that are left."""
    for at, (before, after) in enumerate(widths):
        if before < 0 or after < 0:
            end = data.ty.shape[at] + min(after, 0)
            data = R.strided_slice(data, [at], [max(-before, 0)], [end], assume_inbound=True)
    return data, [(max(before, 0), max(after, 0)) for before, after in widths]


def _by_position(data: Any, widths: Sequence[tuple[int, ...]], mode: str) -> Any:
    for at, pair in enumerate(widths):
        if any(pair):
            places = np.pad(np.arange(int(data.ty.shape[at])), pair, mode=mode)  # type: ignore[call-overload]
            data = R.take(data, relax.const(places.astype("int64")), at)
    return data


@operator("nn.dilate")
def dilate(data: Tensor, strides: Sequence[int], dilation_value: float = 0.0) -> Tensor:
    """Elements of one value between the others, `stride - 1` along each dimension."""
    for at, stride in enumerate(strides):
        if stride > 1:
            shape = list(data.ty.shape)
            widths = _after(len(shape) + 1, at + 1, stride - 1)
            spread = R.nn.pad(R.expand_dims(data, at + 1), widths, "constant", float(dilation_value))
            joined = R.reshape(spread, [*shape[:at], int(shape[at]) * stride, *shape[at + 1 :]])
            data = R.strided_slice(joined, [at], [0], [(int(shape[at]) - 1) * stride + 1])
    return data


def _after(rank: int, at: int, count: int) -> list[int]:
    return [count if place == 2 * at + 1 else 0 for place in range(2 * rank)]


@operator("nn.depth_to_space")
def depth_to_space(data: Tensor, block_size: int, layout: str = "NCHW", mode: str = "DCR") -> Tensor:
    """Blocks of channels laid out as blocks of space."""
    given = relayout(data, layout, "NCHW")
    batch, channels, rows, columns = (int(dim) for dim in given.ty.shape)
    block, rest = block_size, channels // block_size**2
    if mode == "DCR":
        cut, order = [batch, block, block, rest, rows, columns], [0, 3, 4, 1, 5, 2]
    else:
        cut, order = [batch, rest, block, block, rows, columns], [0, 1, 4, 2, 5, 3]
    moved = R.permute_dims(R.reshape(given, cut), order)
    return relayout(R.reshape(moved, [batch, rest, rows * block, columns * block]), "NCHW", layout)


@operator("nn.space_to_depth")
def space_to_depth(data: Tensor, block_size: int, layout: str = "NCHW") -> Tensor:
    """Blocks of space laid out as channels."""
    given = relayout(data, layout, "NCHW")
    batch, channels, rows, columns = (int(dim) for dim in given.ty.shape)
    block = block_size
    cut = R.reshape(given, [batch, channels, rows // block, block, columns // block, block])
    moved = R.permute_dims(cut, [0, 3, 5, 1, 2, 4])
    shape = [batch, channels * block**2, rows // block, columns // block]
    return relayout(R.reshape(moved, shape), "NCHW", layout)


@operator("nn.space_to_batch_nd")
def space_to_batch_nd(
    data: Tensor, block_shape: Sequence[int], paddings: Sequence[Sequence[int]], pad_value: float = 0
) -> Tensor:
    """Blocks of space laid out along the batch."""
    count, rank = len(block_shape), int(data.ty.ndim)
    widths = [0, 0, *(number for pair in paddings for number in pair), *[0] * 2 * (rank - count - 1)]
    padded = R.nn.pad(data, widths, "constant", float(pad_value))
    batch, *spatial = (int(dim) for dim in padded.ty.shape)
    cut = [part for size, block in zip(spatial, block_shape, strict=False) for part in (size // block, block)]
    rest = spatial[count:]
    order = [
        *(2 + 2 * each for each in range(count)), 0, *(1 + 2 * each for each in range(count)),
        *range(2 * count + 1, 2 * count + 1 + len(rest)),
    ]  # fmt: skip
    moved = R.permute_dims(R.reshape(padded, [batch, *cut, *rest]), order)
    return R.reshape(moved, [batch * int(np.prod(block_shape)), *cut[::2], *rest])


@operator("nn.batch_to_space_nd")
def batch_to_space_nd(data: Tensor, block_shape: Sequence[int], crops: Sequence[Sequence[int]]) -> Tensor:
    """Parts of the batch laid out as blocks of space, and their edges cut off."""
    count = len(block_shape)
    batch, *sizes = (int(dim) for dim in data.ty.shape)
    spatial, rest = sizes[:count], sizes[count:]
    groups = batch // int(np.prod(block_shape))
    order = [count, *(part for each in range(count) for part in (count + 1 + each, each))]
    order += range(2 * count + 1, 2 * count + 1 + len(rest))
    moved = R.permute_dims(R.reshape(data, [*block_shape, groups, *spatial, *rest]), order)
    whole = [size * block for size, block in zip(spatial, block_shape, strict=True)]
    ends = [size - pair[1] for size, pair in zip(whole, crops, strict=True)]
    axes = list(range(1, count + 1))
    return R.strided_slice(R.reshape(moved, [groups, *whole, *rest]), axes, [pair[0] for pair in crops], ends)


@operator("nn.cross_entropy")
def cross_entropy(predictions: Tensor, targets: Tensor) -> Tensor:
    """Minus the mean over the batch of the targets times the predictions' logarithms."""
    return _entropy(R.log(predictions), targets)


@operator("nn.cross_entropy_with_logits")
def cross_entropy_with_logits(predictions: Tensor, targets: Tensor) -> Tensor:
    """Minus the mean over the batch of the targets times the predictions, which are logarithms."""
    return _entropy(predictions, targets)


def _entropy(logarithms: Any, targets: Any) -> Any:
    total = R.sum(R.multiply(logarithms, targets))
    return R.multiply(total, number(-1 / int(targets.ty.shape[0]), targets))


def _loss_weights(types: Types, attrs: Mapping[str, Any]) -> Mapping[int, TensorType]:
    data = types[0]
    if data is None:
        raise ValueError("its predictions have no type")
    return {2: TensorType([data.shape[1]], data.dtype)}


@operator("nn.nll_loss", fill=_loss_weights)
def nll_loss(
    predictions: Tensor, targets: Tensor, weights: Tensor, reduction: str = "mean", ignore_index: int = -100
) -> Tensor:
    """Minus the weighted predictions of the target classes: their mean, their sum, or each."""
    return R.nn.nll_loss(predictions, targets, weights, reduction, ignore_index)
