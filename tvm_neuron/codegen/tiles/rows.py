"""rows: which rows of each tensor every tile makes, and which it holds, for a group of kernels that is run in tiles."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tvm_neuron.allocation.regions import box, source_maps
from tvm_neuron.codegen.tiles.tiled_dims import main_axis
from tvm_neuron.schedule.expr import Axis
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import Region


@dataclass(frozen=True)
class Held:
    """Rows of a tensor while a tile runs: [start, end) are new, those from `low` on were there or come again."""

    low: int
    start: int
    end: int


@dataclass(frozen=True)
class Group:
    """Kernels that run in tiles; `brought` tensors come from DRAM, in each tile all rows that it needs."""

    kernels: tuple[Kernel, ...]
    dims: Mapping[Tensor, int]
    results: frozenset[Tensor]  # needed after the group, so all their rows are made
    brought: frozenset[Tensor]
    partition_of: Mapping[Tensor, int]
    dtypes: Mapping[Tensor, str]  # in which they are held
    begun: Mapping[Tensor, tuple[int, int]]  # the channels that were made before, of tensors of which others are made
    spans: Mapping[Tensor, tuple[int, int]]  # the rows that are made, [first, end), of results of which others are not
    known: dict[int, "list[dict[Tensor, Held]] | None"] = field(default_factory=dict, init=False, compare=False)
    """What `rows_of` found for so many tiles."""

    @property
    def fewest_rows(self) -> int:
        """Rows of the result that has fewest; those of a span are as many as the axis that is cut has values."""
        rows = [tensor.shape[self.dims[tensor]] for tensor in self.results - self.spans.keys()]
        for kernel in self.kernels:
            if kernel.out in self.spans:
                axis = main_axis(kernel.out_maps[self.dims[kernel.out]])
                assert axis is not None
                rows.append(axis.extent)
        return min(rows)

    def span(self, tensor: Tensor) -> tuple[int, int]:
        """The rows that are made of a tensor."""
        return self.spans.get(tensor, (0, tensor.shape[self.dims[tensor]]))


def rows_of(group: Group, tiles: int) -> list[dict[Tensor, Held]] | None:
    """For each tile the rows of each tensor that it makes or brings in; what none needs is not among them.

    So many tiles make the rows of the results. Where these need many rows of other tensors before their first one, more
    tiles come before: one that made those rows at once would be larger than all others.

    None if a kernel needs more rows of a tensor than the tile makes of it for those that come after the tensor's last
    writer: as in a chain of 3x3 convolutions, each of which adds channels to the tensor that all of them read.
    """
    if tiles not in group.known:  # tiles are tried in several orders
        group.known[tiles] = _rows_of(group, tiles)
    return group.known[tiles]


def _rows_of(group: Group, tiles: int) -> list[dict[Tensor, Held]] | None:
    done = {t: group.span(t)[0] for t in (*(kernel.out for kernel in group.kernels), *group.brought)}
    grains = _grains(group)
    fewest = group.fewest_rows
    first = -(-fewest // tiles)
    needs = _needs(group, grains, done, _ends(group, first))
    if needs is None:
        return None
    every = ((high, group.span(tensor)) for tensor, high in needs.high.items())
    lead = max(-((low - high) * fewest // (end - low)) for high, (low, end) in every) - first
    found: list[dict[Tensor, Held]] = []
    for left in reversed(range(-(-(fewest + lead) * tiles // fewest))):
        needs = _needs(group, grains, done, _ends(group, fewest - -(-left * fewest // tiles)))
        if needs is None:
            return None
        found.append({t: _held(t in group.brought, needs.low.get(t), done[t], end) for t, end in needs.ends.items()})
        done |= needs.ends
    _keep_for_later(found, group.brought)
    return found


@dataclass(frozen=True)
class _Grain:
    """Rows that a kernel writes together: so many from `first`, and from every `step` further."""

    first: int
    step: int
    rows: int

    def rest(self, row: int) -> int:
        """How many rows from `row` on are written together with the one before it."""
        within = (row - self.first) % self.step
        return self.rows - within if row > self.first and 0 < within < self.rows else 0


@dataclass(frozen=True)
class _Needs:
    """What a tile reads of each tensor, [low, high), and the rows that are made of it by its end.

    Where a tile comes before a tensor's first row, `high` is below 0: by as many rows as it will need later.
    """

    low: dict[Tensor, int]
    high: dict[Tensor, int]
    ends: dict[Tensor, int]


def _ends(group: Group, end: int) -> dict[Tensor, int]:
    """The rows that there are of each result once there are `end` of the one that has fewest."""
    spans = {tensor: group.span(tensor) for tensor in group.results}
    return {tensor: low + (high - low) * end // group.fewest_rows for tensor, (low, high) in spans.items()}


def _needs(
    group: Group, grains: Mapping[Tensor, Sequence[_Grain]], done: Mapping[Tensor, int], results: Mapping[Tensor, int]
) -> _Needs | None:
    """What a tile needs for so many rows of the results; `done` ones were made before. None as in `rows_of`."""
    needs = _Needs({}, dict(results), {})
    for kernel in reversed(group.kernels):
        out = kernel.out
        if out not in needs.ends:
            end = max(done[out], needs.high.get(out, 0))
            needs.ends[out] = _rounded_up(end, grains.get(out, ()), out.shape[group.dims[out]])
        if out in group.brought and out in needs.low:
            needs.low[out] = _rounded_down(needs.low[out], grains.get(out, ()))
        start = needs.low.get(out, done[out]) if out in group.brought else done[out]
        cut = cut_of(kernel, group.dims[out], start, needs.ends[out])
        region = _before_first(kernel, group.dims[out], needs.high.get(out, 0)) if cut is None else _region(*cut)
        if region is None:
            continue
        for tensor in dict.fromkeys(kernel.sources()):
            if tensor in done and tensor in group.dims:
                dim = group.dims[tensor]
                for maps in source_maps(kernel, tensor, group.partition_of[tensor]):
                    origin, shape = box(maps, region)
                    high = origin[dim] + shape[dim]
                    needs.high[tensor] = max(needs.high.get(tensor, high), high)
                    if cut is not None:
                        needs.low[tensor] = min(needs.low.get(tensor, origin[dim]), origin[dim])
                    if high > needs.ends.get(tensor, high):
                        return None
    for tensor in group.brought:
        needs.ends.setdefault(tensor, max(done[tensor], needs.high.get(tensor, 0)))
    return needs


def _region(axis: Axis | None, first: int, end: int) -> Region:
    return {} if axis is None else {axis: (first, end)}


def _before_first(kernel: Kernel, dim: int, end: int) -> Region | None:
    """Where the kernel's last row before `end` would be, if that is before its first one."""
    part = kernel.out_maps[dim]
    axis = main_axis(part)
    if axis is None:
        return None
    last = (end - 1 - part.const) // part.terms[axis]
    return {axis: (last, last + 1)} if last < 0 else None


def cut_of(kernel: Kernel, dim: int, start: int, end: int) -> tuple[Axis | None, int, int] | None:
    """The axis to cut, and from where to where, so that the kernel writes rows [start, end); None if it writes none."""
    part = kernel.out_maps[dim]
    axis = main_axis(part)
    if axis is None:
        return (None, 0, 1) if start <= part.const < end else None
    step = part.terms[axis]
    first, last = -((part.const - start) // step), -((part.const - end) // step)
    first, last = max(0, first), min(axis.extent, last)
    return (axis, first, last) if first < last else None


def channels(writers: Sequence[Kernel], partition_dim: int) -> tuple[int, int]:
    """From the first to the last channel that the kernels write."""
    spans = [kernel.out_maps[partition_dim].span for kernel in writers]
    return min(low for low, _ in spans), max(high for _, high in spans) + 1


def _held(is_brought: bool, low: int | None, done: int, end: int) -> Held:
    if is_brought:
        return Held(end if low is None else low, end if low is None else low, end)
    return Held(done if low is None else min(low, done), done, end)


def _keep_for_later(tiles: list[dict[Tensor, Held]], brought: frozenset[Tensor]) -> None:
    """A tile also holds what only a later one reads of its rows."""
    for before, after in zip(reversed(tiles[:-1]), reversed(tiles[1:]), strict=True):
        for tensor, held in before.items():
            if tensor in after and tensor not in brought:
                before[tensor] = Held(min(held.low, after[tensor].low), held.start, held.end)


def _grains(group: Group) -> dict[Tensor, list[_Grain]]:
    """Those of tensors of which kernels write several rows for each value of the axis that is cut."""
    found: dict[Tensor, list[_Grain]] = {}
    for kernel in group.kernels:
        part: Linear = kernel.out_maps[group.dims[kernel.out]]
        if len(part.terms) > 1:
            axis = main_axis(part)
            assert axis is not None
            rows = sum(step * (a.extent - 1) for a, step in part.terms.items() if a is not axis) + 1
            found.setdefault(kernel.out, []).append(_Grain(part.const, part.terms[axis], rows))
    return found


def _rounded_up(end: int, grains: Sequence[_Grain], extent: int) -> int:
    """The first row from `end` on that no grain holds together with the one before."""
    while end < extent and (moved := [grain.rest(end) for grain in grains if grain.rest(end)]):
        end += max(moved)
    return min(end, extent)


def _rounded_down(low: int, grains: Sequence[_Grain]) -> int:
    """The last row up to `low` that no grain holds together with the one before."""
    while moved := [grain.rows - grain.rest(low) for grain in grains if grain.rest(low)]:
        low -= max(moved)
    return low
