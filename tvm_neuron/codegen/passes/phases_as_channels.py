"""phases_as_channels: all phases of a convolution of an enlarged map as output channels of one, and where these go.

A transposed convolution with a window of 400 and a stride of 100, as an inverse short-time Fourier transform has it, is
one product for 100 samples of each of its frames, which are put behind each other then.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import prod

import numpy as np

from tvm_neuron.codegen.passes.canonical import canonical
from tvm_neuron.codegen.passes.phase_weights import Small, weights_of
from tvm_neuron.codegen.passes.window_phases import Phases
from tvm_neuron.schedule.expr import Apply, Axis, Expr, Index, Load, Num, axes_of, replace_axes
from tvm_neuron.schedule.graph import Block
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.roles import data_factor, factors
from tvm_neuron.schedule.tensor import Tensor


def may_be_channels(block: Block) -> bool:
    """Whether all data meet all output channels, so that there may be more of these: not of one in groups."""
    data = data_factor(block)
    return data is not None and not set(axes_of(data)) & set(_channels(block))


def phases_as_channels(block: Block, phases: Sequence[Phases], small: Small) -> list[Block]:
    """The contraction of all phases, and the moves of its results to where the block has them."""
    data = data_factor(block)
    assert data is not None
    counts = [Axis(along.at.name, along.results(0)) for along in phases]
    which = [Axis(f"{along.at.name}.phase", along.count) for along in phases]
    taps = [Axis(f"t{along.dim}", len(along.all_places), True) for along in phases]
    meets = [
        np.stack([own[:, None] == np.array(along.all_places) for own in along.taps], axis=-1).astype(np.float32)
        for along in phases
    ]
    indices = small.indices(data)
    for along, count, tap in zip(phases, counts, taps, strict=True):
        places = along.all_places
        at = Linear(small.before[along.dim] + places[0], {count: along.step, tap: places.step})
        indices[along.dim] = at.expr()
    places_of = [axis for pair in zip(taps, which, strict=True) for axis in pair]
    weights = weights_of(block, [along.tap for along in phases], meets, places_of)
    channels, gone = _channels(block), {along.tap for along in phases} | {along.at for along in phases}
    beside = [axis for axis in block.spatial if axis not in gone and axis not in channels]
    one_of = [*channels, *which]
    channel = Linear(0, {axis: prod(a.extent for a in one_of[n + 1 :]) for n, axis in enumerate(one_of)})
    shape = [axis.extent for axis in beside] or [1]
    all_phases = Tensor(
        f"{block.output.name}.phases",
        (*shape, prod(axis.extent for axis in one_of), *(axis.extent for axis in counts)),
        block.output.dtype,
    )
    there = (*(map(Index, beside) if beside else [Num(0)]), channel.expr(), *map(Index, counts))
    contraction = replace(
        block,
        axes=(*beside, *one_of, *counts, *(axis for axis in block.reduction if axis not in gone), *taps),
        output=all_phases,
        index=there,
        expr=Apply("multiply", (Load(small.tensor, tuple(indices)), weights)),
    )
    return [
        canonical(contraction),
        *_moves(block, phases, Load(all_phases, there), counts, which, (*beside, *channels)),
    ]


def _channels(block: Block) -> list[Axis]:
    """The axes of the output along which weights change."""
    data = data_factor(block)
    weighted = {axis for part in factors(block.expr) if part is not data for axis in axes_of(part)}
    return [axis for axis in block.spatial if axis in weighted]


def _moves(
    block: Block,
    phases: Sequence[Phases],
    source: Load,
    counts: Sequence[Axis],
    which: Sequence[Axis],
    others: Sequence[Axis],
) -> list[Block]:
    """All results of each phase; the last ones by themselves where not every phase has as many."""
    cuts = []
    for along in phases:
        whole, rest = divmod(along.at.extent, along.count)
        boxes = [((0, whole), (0, along.count)), ((whole, 1), (0, rest))]
        cuts.append([box for box in boxes if box[0][1] and box[1][1]])
    found = []
    for chosen in product(*cuts):
        by: dict[Axis, Expr] = {}
        into: dict[Axis, Expr] = {}
        axes = list(others)
        for along, count, phase, (results, kinds) in zip(phases, counts, which, chosen, strict=True):
            new, kind = Axis(count.name, results[1]), Axis(phase.name, kinds[1])
            axes += [new, kind]
            by[count], by[phase] = Linear(results[0], {new: 1}).expr(), Index(kind)
            into[along.at] = Linear(results[0] * along.count, {new: along.count, kind: 1}).expr()
        index = tuple(replace_axes(part, into) for part in block.index)
        read = Load(source.tensor, tuple(replace_axes(part, by) for part in source.indices))
        found.append(canonical(Block(block.origin, tuple(axes), block.output, index, read)))
    return found
