"""Kernel: one scheduled nest: a root (contraction or reduction, or none) and the arithmetic on its way out."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.program import Origin
from tvm_neuron.schedule.expr import Axis, Expr, Index, Load, Num, loads
from tvm_neuron.schedule.graph import Block, linear_indices
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.partitions import period, stepping
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import PARTITIONS

ACCUMULATOR = Tensor("accumulator", (), "float32")
ROOT = Load(ACCUMULATOR, ())  # stands in a kernel's expression for the value of its root


@dataclass(frozen=True)
class Operand:
    """A tensor and where in it is read."""

    tensor: Tensor
    maps: tuple[Linear, ...]


@dataclass(frozen=True, eq=False)
class Contraction:
    """root[m, *free] = sum over k and steps of weights[k, *steps, m] * data[k + first, *maps(free, steps)].

    With a `scale`, each of these weights times scale[k + ...], a value for each summed channel known only at run time.
    """

    data: Tensor
    maps: tuple[Linear, ...]  # per dimension of data but its partition dimension, whose entry is Linear(first)
    steps: tuple[Axis, ...]
    weights: NDArray[Any]  # [K, *steps, M] float32; may be a strided view of the model's own array
    has_zeros: bool  # whole blocks of the weights may be zero and need not be multiplied
    dtype: str = "bfloat16"  # in which the PE array reads both operands
    side: Axis | None = None  # a free axis whose values lie on columns side by side: weights [K, *steps, side * M]
    repeats: int = 1  # how often each weight of the model occurs
    scale: Operand | None = None  # its maps as those of data; on the partitions of the weights

    @cached_property
    def _met(self) -> NDArray[np.bool_]:
        """[K, M]: which channels are multiplied by anything for which output channel."""
        return np.any(self.weights.reshape(self.weights.shape[0], -1, self.weights.shape[-1]), axis=1)

    @cached_property
    def is_diagonal(self) -> bool:
        """Whether every output channel depends on one channel at most, and no two on the same."""
        return bool(self._met.sum(axis=0).max() <= 1 and self._met.sum(axis=1).max() <= 1)

    @cached_property
    def is_depthwise(self) -> bool:
        """Whether every output channel depends on the channel of the same number alone."""
        depth, width = self._met.shape
        return depth == width and int(self._met.sum()) == int(self._met.diagonal().sum())

    def used_tiles(self, rows: int, columns: int) -> int:
        """How many stationary tiles of so many rows and columns there are that are not all zero."""
        depth, width = self.weights.shape[0], self.weights.shape[-1]
        if not self.has_zeros:
            return -(-depth // rows) * -(-width // columns)
        met = np.logical_or.reduceat(self._met, range(0, depth, rows), axis=0)
        return int(np.logical_or.reduceat(met, range(0, width, columns), axis=1).sum())

    def rows_met(self, start: int, end: int) -> NDArray[np.intp]:
        """The channels that output channels [start, end) depend on, in order."""
        return np.flatnonzero(self._met[:, start:end].any(axis=1))

    def most_depth(self, columns: int) -> int:
        """Over how many channels at most the ones reach that `columns` output channels depend on."""
        if not self.has_zeros:
            return int(self.weights.shape[0])
        starts = range(0, self.weights.shape[-1], columns)
        rows = [self.rows_met(start, start + columns) for start in starts]
        return max((int(found[-1] - found[0]) + 1 for found in rows if found.size), default=1)


@dataclass(frozen=True, eq=False)
class Product:
    """root[channel, *free] = sum over depth and steps of stationary[...] * moving[...], known only at run time.

    `depth` lies on the partitions of both, on the same ones at the same time. Free axes of the stationary operand are
    axes of batches: each of their values takes a matmul of its own. The moving operand may be weights, see
    `weights_as_moving`.
    """

    stationary: Operand  # its axis `channel` becomes the partitions of the result
    moving: Operand
    depth: Axis
    steps: tuple[Axis, ...]
    dtype: str = "bfloat16"  # in which the PE array reads both operands
    is_sum: bool = False  # the stationary operand is the same for all of the depth: in float32, as other engines sum
    bias: NDArray[np.float32] | None = None  # [columns of weights that move], which the array adds to each row


@dataclass(frozen=True, eq=False)
class Transposition:
    """root[channel, *free] = source[...], where `row`, a free axis, lies on the partitions of the source."""

    source: Operand
    row: Axis


@dataclass(frozen=True, eq=False)
class Reduction:
    """root[p, *free] = combine over the axes of load."""

    load: Load
    combine: str
    axes: tuple[Axis, ...]

    @property
    def loads(self) -> tuple[Load, ...]:
        """All that it reads."""
        return (self.load,)

    def reading(self, leaf: Callable[[Num | Index | Load], Expr]) -> Self:
        """The same of other loads."""
        load = leaf(self.load)
        assert isinstance(load, Load)
        return replace(self, load=load)


@dataclass(frozen=True, eq=False)
class Statistics(Reduction):
    """root[p, *free, which] = the mean over the axes of load, then the variance around it; `which` is the last axis."""


@dataclass(frozen=True, eq=False)
class Scan(Reduction):
    """root[p, *free] = factor * (root one place before along the free axis `along`, at first initial) + load.

    The one reduced axis counts `along`; `load` and `factor` lie along it, `initial` is the same all along.
    """

    factor: Num | Load
    initial: Num | Load
    along: Axis

    @property
    def loads(self) -> tuple[Load, ...]:
        """All that it reads."""
        return tuple(part for part in (self.load, self.factor, self.initial) if isinstance(part, Load))

    def reading(self, leaf: Callable[[Num | Index | Load], Expr]) -> Self:
        """The same of other loads."""
        factor, initial = leaf(self.factor), leaf(self.initial)
        assert isinstance(factor, Num | Load)
        assert isinstance(initial, Num | Load)
        return replace(super().reading(leaf), factor=factor, initial=initial)


@dataclass(frozen=True, eq=False)
class Gather:
    """root[channel, *free] = data[*maps], but positions[...] along `dims`; data in DRAM, positions along `channel`."""

    data: Operand  # may be known at compile time
    positions: Operand
    dims: tuple[int, ...]  # one behind the other, as in row-major order


Root = Contraction | Product | Transposition | Reduction | Gather


@dataclass(frozen=True, eq=False)
class Kernel:
    """out[*out_maps] = expr(ROOT, loads) for every value of `channel` (the partition axis) and the `free` axes.

    `by_dma` marks a kernel that only moves data in a way no engine can (across partitions, or DRAM to DRAM),
    `is_turned` one of these that brings an input in transposed, which must keep its dtype on the way.
    """

    origins: tuple[Origin, ...]  # of all that was fused into it; the first is the root's
    out: Tensor
    out_maps: tuple[Linear, ...]
    channel: Axis
    free: tuple[Axis, ...]
    expr: Expr
    root: Root | None = None
    by_dma: bool = False
    is_turned: bool = False

    @cached_property
    def tensors(self) -> tuple[Tensor, ...]:
        """The tensor that it writes and every run-time tensor that it reads, each once."""
        return tuple(dict.fromkeys((self.out, *self.sources())))

    @cached_property
    def matched(self) -> tuple[Tensor, ...]:
        """The run-time tensors of which it reads each element only to make the one of the same place."""
        maps: dict[Tensor, list[tuple[Linear, ...] | None]] = {}
        for load in self.operand_loads():
            maps.setdefault(load.tensor, []).append(linear_indices(load.indices))
        every = list(self.sources())
        return tuple(
            tensor
            for tensor, found in maps.items()
            if all(here == self.out_maps for here in found) and every.count(tensor) == len(found)
        )

    @property
    def whole(self) -> tuple[Axis, ...]:
        """The free axes along which it can't be cut: what it makes of one place it needs for the next."""
        if isinstance(self.root, Scan):
            return (self.root.along,)
        return self.free[-1:] if isinstance(self.root, Statistics) else ()

    @cached_property
    def stepped(self) -> Mapping[Axis, int]:
        """The free axes along which its arithmetic reads from one run of partitions after the other, or writes so.

        And from how many, which instructions take one by one.
        """
        reads = (linear_indices(load.indices) or () for load in self.operand_loads())
        found: dict[Axis, int] = {}
        for part in (part for maps in (*reads, self.out_maps) for part in maps if self.channel in part.terms):
            for axis, step in stepping(part, self.channel).items():
                found[axis] = max(found.get(axis, 1), min(axis.extent, period(step)))
        return found

    @property
    def channels(self) -> int:
        """How many channels it has to run over: of what is the same for every one, a chunk of partitions."""
        return min(self.channel.extent, PARTITIONS) if self.out.is_spread else self.channel.extent

    def operand_loads(self) -> Iterator[Load]:
        """Loads of the expression from tensors that are known only at run time."""
        for load in loads(self.expr):
            if load.tensor is not ACCUMULATOR and load.tensor.value is None:
                yield load

    def multiplied(self) -> tuple[Tensor, ...]:
        """The run-time tensors that the PE array multiplies."""
        if isinstance(self.root, Contraction):
            return (self.root.data,)
        if isinstance(self.root, Product):
            operands = (self.root.stationary.tensor, self.root.moving.tensor)
            return tuple(dict.fromkeys(tensor for tensor in operands if tensor.value is None))
        return ()

    def sources(self) -> Iterator[Tensor]:
        """Every run-time tensor that it reads."""
        yield from self.multiplied()
        if isinstance(self.root, Contraction) and self.root.scale:
            yield self.root.scale.tensor
        elif isinstance(self.root, Transposition):
            yield self.root.source.tensor
        elif isinstance(self.root, Reduction):
            yield from (load.tensor for load in self.root.loads)
        elif isinstance(self.root, Gather):
            yield from (t for t in (self.root.data.tensor, self.root.positions.tensor) if t.value is None)
        for load in self.operand_loads():
            yield load.tensor


def is_read_backward(kernel: Kernel, axis: Axis) -> bool:
    """Whether a load of the kernel's expression falls along the axis; access patterns only rise."""
    return any(
        part.terms.get(axis, 0) < 0 for load in kernel.operand_loads() for part in linear_indices(load.indices) or ()
    )


def kernel_of(
    block: Block,
    out_maps: tuple[Linear, ...],
    channel: Axis,
    expr: Expr,
    root: Root | None = None,
    by_dma: bool = False,
) -> Kernel:
    """The kernel that runs a block over its own axes, `channel` along the partitions."""
    free = tuple(axis for axis in block.spatial if axis.extent > 1 and axis is not channel)
    return Kernel((block.origin,), block.output, out_maps, channel, free, expr, root, by_dma)
