"""join_slices: convolutions of slices of a tensor's channels whose results lie side by side become one, by groups.

Networks convolve each part of the channels by a kernel of another size (MixNet), and exporters write grouped
convolutions so. A smaller kernel has its weights amid zeros, where the PE array multiplies by no more tiles for that.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray
from tvm import relax, tirx

from tvm_neuron.frontend.convolution import Convolution
from tvm_neuron.frontend.decompose.emitter import Emitter
from tvm_neuron.frontend.decompose.shapes import static_shape
from tvm_neuron.frontend.known import Made, constant_of, is_of_channels, uses_of
from tvm_neuron.frontend.origin import origin_of, with_blocks

_TILE = 128  # channels, of what is read or of results, that a tile of weights has at most on any chip


def join_slices(func: relax.Function) -> relax.Function:
    """Replace such convolutions."""
    uses = uses_of(func)
    blocks = []
    for block in func.body.blocks:
        made = {binding.var: binding.value for binding in block.bindings if isinstance(binding, relax.VarBinding)}
        bindings: list[relax.Binding] = []
        for binding in block.bindings:
            bindings += _joined(binding, made, uses) or [binding]
        blocks.append(type(block)(bindings))
    return with_blocks(func, blocks)


@dataclass(frozen=True)
class _Slice:
    """A convolution of channels [start, end) of `source`, and a bias [outputs] for its results."""

    value: relax.Expr
    convolution: Convolution
    bias: NDArray[np.float64] | None
    source: relax.Expr
    start: int
    end: int


def _joined(binding: relax.Binding, made: Made, uses: Counter[relax.Var]) -> list[relax.Binding] | None:
    """What a concatenation of channels becomes; None where no two of its parts are one convolution."""
    call = made.get(binding.var)
    if not _is_call(call, "relax.concat") or call.attrs.axis != 1 or not isinstance(call.args[0], relax.Tuple):
        return None
    fields = list(call.args[0].fields)
    runs = list(_runs([_slice(field, made, uses) or field for field in fields]))
    if len(runs) == len(fields):
        return None
    emitter = Emitter(binding, made)
    parts = [_emitted(run[0], run[1], emitter) if isinstance(run, tuple) else run for run in runs]
    if len(parts) > 1:
        emitter.emit(relax.op.concat(parts, 1))
    *before, last = emitter.bindings
    return [*before, relax.VarBinding(binding.var, last.value)]


def _runs(parts: Iterable[_Slice | relax.Expr]) -> Iterator[tuple[list[_Slice], Convolution] | relax.Expr]:
    """The parts in order, as many of those that follow each other together as are one convolution, with that."""
    left = list(parts)
    while left:
        run: list[_Slice] = []
        for part in left:
            if not isinstance(part, _Slice):
                break
            run.append(part)
        whole = None
        while len(run) > 1 and (whole := _whole(run)) is None:
            run.pop()
        first = left[0]
        yield (run, whole) if whole is not None else first.value if isinstance(first, _Slice) else first
        left = left[max(1, len(run)) :]


def _whole(run: Sequence[_Slice]) -> Convolution | None:
    """One for all of a run; None where there is none, or it is more work for the PE array."""
    first, last = run[0], run[-1]
    follow = all(one.source.same_as(two.source) and one.end == two.start for one, two in pairwise(run))
    found = Convolution.side_by_side([each.convolution for each in run], first.source) if follow else None
    apart = sum(_tiles(each.convolution) + _moved(each) for each in run)
    together = 0 if found is None else _tiles(found) + (first.start > 0 and _moved(replace(first, end=last.end)))
    return found if together <= apart else None


def _tiles(convolution: Convolution) -> int:
    """By how many tiles of weights the PE array multiplies, at all places of the windows that they fill."""
    outputs, inputs = convolution.weights.shape[:2]
    filled = np.any(convolution.weights != 0, axis=1)  # [outputs, *kernel]
    found = 0
    for start in range(0, outputs, _TILE):
        part = filled[start : start + _TILE]
        places = [np.flatnonzero(part.any(axis=tuple({*range(part.ndim)} - {dim}))) for dim in range(1, part.ndim)]
        groups = [channel * convolution.groups // outputs for channel in (start, start + len(part) - 1)]
        depth = -(-(groups[1] + 1) * inputs // _TILE) - groups[0] * inputs // _TILE
        found += depth * prod(int(at[-1] - at[0]) + 1 for at in places if at.size)
    return found


def _moved(part: _Slice) -> int:
    """How many tiles bring a slice to the first partitions."""
    first, rest = divmod(part.start, _TILE)
    return -(-part.end // _TILE) - first if rest else 0


def _emitted(run: Sequence[_Slice], whole: Convolution, emitter: Emitter) -> relax.Expr:
    """What takes the place of a run."""
    origin = origin_of(run[0].convolution.call)
    start, end = run[0].start, run[-1].end
    if (start, end) != (0, (static_shape(whole.data) or ())[1]):
        data = emitter.emit(relax.op.strided_slice(whole.data, [1], [start], [end]), origin)
        whole = replace(whole, data=data)
    found: relax.Expr = emitter.emit(whole.expr(), origin)
    if any(each.bias is not None for each in run):
        none = np.zeros(1)
        biases = [np.broadcast_to(none if p.bias is None else p.bias, len(p.convolution.weights)) for p in run]
        bias = np.concatenate(biases).astype(np.float32)
        found = emitter.emit(relax.op.add(found, relax.const(bias.reshape(-1, *[1] * len(whole.before)))), origin)
    return found


def _slice(field: relax.Expr, made: Made, uses: Counter[relax.Var]) -> _Slice | None:
    """What a part of a concatenation is, if nothing else reads it nor its convolution."""
    value, bias = made.get(field), None
    if uses[field] != 1:
        return None
    if _is_call(value, "relax.add"):
        convolved, added = value.args
        shape = static_shape(value)
        known = constant_of(added, made) if shape and is_of_channels(static_shape(added), shape) else None
        if known is None or uses[convolved] != 1 or static_shape(convolved) != shape:
            return None
        value, bias = made.get(convolved), known.reshape(-1)
    convolution = Convolution.of(value)
    channels = None if convolution is None else _channels(convolution.data, made)
    return None if convolution is None or channels is None else _Slice(field, convolution, bias, *channels)


def _channels(data: relax.Expr, made: Made) -> tuple[relax.Expr, int, int] | None:
    """The tensor of which a value is channels [start, end); None where it is none."""
    value = made.get(data)
    if isinstance(value, relax.TupleGetItem) and _is_call(split := made.get(value.tuple_value), "relax.split"):
        if split.attrs.axis != 1:
            return None
        *before, width = (int(part.shape[1]) for part in split.ty.fields[: value.index + 1])
        return split.args[0], sum(before), sum(before) + width
    if _is_call(value, "relax.strided_slice") and all(map(_is_known, value.args[1:])):
        axes, begin, end, *steps = ([int(each.value) for each in part.fields] for part in value.args[1:])
        is_plain = axes == [1] and steps in ([], [[1]])
        width = (static_shape(data) or (0, 0))[1]
        return (value.args[0], begin[0], begin[0] + width) if is_plain and 0 <= begin[0] < end[0] else None
    return None


def _is_known(numbers: relax.Expr) -> bool:
    """Whether it is a tuple of numbers, none of them symbolic."""
    return isinstance(numbers, relax.Tuple) and all(isinstance(each, tirx.IntImm) for each in numbers.fields)


def _is_call(value: relax.Expr | None, name: str) -> TypeGuard[relax.Call]:
    return isinstance(value, relax.Call) and getattr(value.op, "name", "") == name
