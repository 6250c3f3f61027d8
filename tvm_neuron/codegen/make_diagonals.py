"""with_diagonals: stationary tiles that are mostly zeros are made in SBUF by POOL, not brought from DRAM.

To make one takes about as long as its zeros take to come, so it is worth it where a network waits for DRAM and not for
POOL: for a share of the tiles, which the clock tells. Engines work in the order of the program, so each tile is made
where POOL stands still for long enough, some time before the PE array needs it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.codegen.emit.factored import side_by_side
from tvm_neuron.codegen.emit_stage import Emitted
from tvm_neuron.codegen.weight_loads import Ints, Load, times_read, touched_bytes, weight_loads, without_gaps
from tvm_neuron.hw import Device
from tvm_neuron.isa import QUEUES, Affine, DramTile, Instruction, Tile
from tvm_neuron.isa.dtypes import DTYPES, size_bytes
from tvm_neuron.isa.engines import of_dma
from tvm_neuron.program import DramTensor, Node, Program
from tvm_neuron.program.dynamic import expand
from tvm_neuron.program.program import walk
from tvm_neuron.sim.clock import clock_hz, duration_ps, run_clock

_SHARES = (0.25, 0.5, 0.75, 1.0)  # of the tiles, by the time that they take to come
_BUSY_DMA = 0.6  # of a run: where transfers take less of it, nothing waits for them for long
_EARLY = 2  # starts of a transfer: so much sooner than needed, for the rest also runs sooner then
_NAME = "diagonals"


@dataclass(frozen=True)
class _Times:
    """When each node of a body begins and ends, and each pause of POOL with the node that ends it; in ps."""

    start: Ints
    end: Ints
    pauses: Ints  # [pauses, 3]: start, end, node


@dataclass
class _Factors:
    """Masks and numbers side by side on all partitions, as one tensor of weights that comes to byte `at` of each."""

    at: int
    dtype: str
    parts: list[NDArray[np.generic]] = field(default_factory=list)
    places: dict[object, int] = field(default_factory=dict)

    @property
    def bytes_per_partition(self) -> int:
        """What all take."""
        return sum(part[0].size for part in self.parts) * size_bytes(self.dtype)

    def place(self, key: object, part: NDArray[np.generic]) -> int:
        """The byte of each partition from which on the part is, one row for each."""
        if key not in self.places:
            self.places[key] = self.at + self.bytes_per_partition
            self.parts.append(part)
        return self.places[key]


def with_diagonals(emitted: Emitted, synchronised: Program, device: Device) -> Iterator[Emitted]:
    """The same with a share of such tiles made; nothing where no transfer is waited for.

    `synchronised` is its program with waits.
    """
    loads, reads = list(weight_loads(emitted)), times_read(emitted)
    several: dict[int, list[Load]] = {}
    for load in loads:
        if load.tensor in emitted.builder.factored:
            several.setdefault(load.tensor, []).append(load)
    whole = {tensor: its for tensor, its in several.items() if len(its) == reads[tensor]}
    dtypes = {load.into.dtype for its in whole.values() for load in its}  # one table holds numbers of one
    times = _times(synchronised, device) if len(dtypes) == 1 else None
    if times is None:
        return
    touched = touched_bytes(emitted.program.body)
    seen: list[list[Load]] = []
    for share in _SHARES:
        chosen = _share(whole, share, device)
        if not chosen or chosen in seen:
            continue
        seen.append(chosen)
        factors = _Factors(emitted.builder.factors.base, chosen[0].into.dtype)
        making = {load.at: _making(emitted, load, factors) for load in chosen}
        # The zone is for each of the weights once: those that kernels read at different places take it more often.
        if factors.bytes_per_partition <= emitted.builder.factors.capacity:
            yield _made(emitted, chosen, making, factors, touched, times, device)


def _share(whole: Mapping[int, Sequence[Load]], share: float, device: Device) -> list[Load]:
    """The loads of every so manieth tensor, in the order of the program."""
    found: list[Load] = []
    owed = 0.0
    for its in whole.values():
        each = sum(load.copy.cost(device).busy_cycles for load in its)
        owed += share * each
        if owed >= each:
            owed -= each
            found += its
    return sorted(found, key=lambda load: load.at)


def _made(
    emitted: Emitted, chosen: Sequence[Load], making: Mapping[int, Sequence[Instruction]], factors: _Factors,
    touched: Ints, times: _Times, device: Device,
) -> Emitted:  # fmt: skip
    """The same with what these bring made, by the instructions that each node is to become."""
    program, dtype = emitted.program, factors.dtype
    before: dict[int, list[Instruction]] = {}
    left = (times.pauses[:, 1] - times.pauses[:, 0]).tolist()
    for load in reversed(chosen):
        taken = sum(duration_ps(each.cost(device).busy_cycles, clock_hz(device, "pool")) for each in making[load.at])
        at = _place(load, taken, touched, times, left, _EARLY * device.dma_start_ns * 1000)
        before[at] = [*making[load.at], *before.get(at, ())]
    tensors: list[DramTensor | None] = list(program.tensors)
    arrays = dict(emitted.arrays)
    for tensor in {load.tensor for load in chosen}:
        del arrays[program.tensors[tensor].name]
        tensors[tensor] = None
    taken_names = {tensor.name for tensor in program.tensors}
    names = chain([_NAME], (f"{_NAME}.{number}" for number in count(1)))
    name = next(name for name in names if name not in taken_names)
    arrays[name] = side_by_side(factors.parts).astype(DTYPES[dtype])
    rows, elems = arrays[name].shape
    tensors.append(DramTensor(name, "weight", (rows, elems), dtype))
    target = Tile("sbuf", dtype, Affine(), rows, Affine(factors.at), ((1, elems),))
    source = DramTile(len(tensors) - 1, dtype, Affine(), ((elems, rows), (1, elems)))
    before[min(before)].insert(0, chosen[0].copy.replace(target=target, source=source))
    body: list[Node] = []
    for number, node in enumerate(program.body):
        body += before.get(number, ())
        body += () if number in making else (node,)
    return without_gaps(emitted, tensors, body, arrays)


def _making(emitted: Emitted, load: Load, factors: _Factors) -> list[Instruction]:
    """What makes the tiles that a transfer would bring."""
    found: list[Instruction] = []
    at, item = load.first, size_bytes(load.into.dtype)
    for number, tile in enumerate(emitted.builder.factored[load.tensor]):
        mask = factors.place((tile.mask.shape, tile.mask.tobytes()), tile.mask)
        numbers = factors.place((load.tensor, number), tile.numbers)
        made = tile.make(factors.dtype, at, mask, numbers)
        found.append(made.replace(origin=load.copy.origin))
        at += tile.row_elems * item
    return found


def _place(load: Load, taken: int, touched: Ints, times: _Times, left: list[int], early: int) -> int:
    """The node before which to make what it brings: where POOL pauses for so long, as late as that is early enough.

    What it takes is `left` no more. If no pause is long enough, the longest is.
    """
    its = (touched[:, 1] < load.first + load.into.extent_bytes) & (touched[:, 2] > load.first)
    nodes = touched[its, 0]
    last, use = int(nodes[nodes < load.at].max(initial=-1)), int(nodes[nodes > load.at].min(initial=len(times.end) - 1))
    starts, ends, before = times.pauses.T
    free = times.end[last] if last >= 0 else 0
    low = max(bisect_right(before, last), bisect_left(starts, free))
    high = min(bisect_right(before, use), bisect_right(ends, times.start[use] - early))
    if low >= high:
        return use
    fits = (pause for pause in range(high - 1, low - 1, -1) if left[pause] >= taken)
    pause = next(fits, None)
    if pause is None:
        pause = max(range(low, high), key=left.__getitem__)
    left[pause] -= taken
    return int(before[pause])


def _times(program: Program, device: Device) -> _Times | None:
    """Those of a run; None if transfers take so little of it that nothing waits for them for long."""
    dynamic = expand(program)
    clock = run_clock(program, device, dynamic, [instruction.cost(device) for instruction in dynamic.statics])
    lasts = clock.end - clock.start
    is_dma = np.isin(dynamic.queue, [number for number, queue in enumerate(QUEUES) if of_dma(queue)])
    if lasts[is_dma].sum() < _BUSY_DMA * clock.total:
        return None
    sizes = [sum(1 for _ in walk((node,))) for node in program.body]
    node = np.repeat(np.arange(len(sizes)), sizes)[dynamic.number]
    start, end = np.full(len(sizes), clock.total, np.int64), np.zeros(len(sizes), np.int64)
    np.minimum.at(start, node, clock.start)
    np.maximum.at(end, node, clock.end)
    is_pool = dynamic.queue == QUEUES.index("pool")
    begins = np.concatenate([[0], clock.end[is_pool][:-1]])[: is_pool.sum()]
    return _Times(start, end, np.stack([begins, clock.start[is_pool], node[is_pool]], axis=1))
