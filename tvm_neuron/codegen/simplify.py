"""simplify: the subgraph as kernels: constants folded, moves read through, layouts chosen, arithmetic fused."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from math import inf

from tvm_neuron.codegen.kernels.bounce import bounce_through_dram
from tvm_neuron.codegen.kernels.fill_first import fill_first
from tvm_neuron.codegen.kernels.fold_rows import fold_rows
from tvm_neuron.codegen.kernels.fold_windows import fold_windows
from tvm_neuron.codegen.kernels.fuse import fuse
from tvm_neuron.codegen.kernels.in_rows import kernels_of
from tvm_neuron.codegen.kernels.operands import choose_operands, separate_operands
from tvm_neuron.codegen.kernels.pack import pack_depth
from tvm_neuron.codegen.kernels.pack_columns import pack_columns
from tvm_neuron.codegen.kernels.row_statistics import row_statistics
from tvm_neuron.codegen.kernels.scaled_ones import scale_ones
from tvm_neuron.codegen.kernels.shared_weights import share_weights
from tvm_neuron.codegen.kernels.simplified import simplified
from tvm_neuron.codegen.kernels.split_depth import split_depth
from tvm_neuron.codegen.kernels.split_outputs import split_outputs
from tvm_neuron.codegen.kernels.start_early import start_early
from tvm_neuron.codegen.kernels.storage_dtypes import choose_dtypes
from tvm_neuron.codegen.kernels.sum_biases import sum_biases
from tvm_neuron.codegen.kernels.tables import move_tables
from tvm_neuron.codegen.kernels.turn_inputs import is_of_input, turn_inputs
from tvm_neuron.codegen.kernels.widen_outputs import widen_outputs
from tvm_neuron.codegen.overlap.work import load_ps
from tvm_neuron.codegen.passes.add_after_contractions import add_after_contractions
from tvm_neuron.codegen.passes.add_in_products import add_in_products
from tvm_neuron.codegen.passes.after_moves import scale_after_moves
from tvm_neuron.codegen.passes.bands import band_of
from tvm_neuron.codegen.passes.batches import split_batches
from tvm_neuron.codegen.passes.before_moves import compute_before_moves
from tvm_neuron.codegen.passes.canonical import canonical
from tvm_neuron.codegen.passes.channels_first import channels_first
from tvm_neuron.codegen.passes.choose_routes import choose_routes
from tvm_neuron.codegen.passes.copies import replace_tensors
from tvm_neuron.codegen.passes.cut_batches import cut_batches
from tvm_neuron.codegen.passes.divide_after_products import divide_after_products
from tvm_neuron.codegen.passes.enumerate import enumerate_indices
from tvm_neuron.codegen.passes.flat_heads import flat_heads
from tvm_neuron.codegen.passes.fold import fold_constants
from tvm_neuron.codegen.passes.gathers import separate_gathers
from tvm_neuron.codegen.passes.group_sums import group_sums
from tvm_neuron.codegen.passes.guard_rows import guard_rows
from tvm_neuron.codegen.passes.image_rows import image_rows
from tvm_neuron.codegen.passes.join_dims import join_dims
from tvm_neuron.codegen.passes.join_terms import join_terms
from tvm_neuron.codegen.passes.lay_out import layouts, split_scattered
from tvm_neuron.codegen.passes.layout import assign_partitions
from tvm_neuron.codegen.passes.move_cost import kernels_ps, pricer
from tvm_neuron.codegen.passes.moves import (
    join_moves,
    read_through,
    write_moves_through,
    write_products_through,
    write_through,
)
from tvm_neuron.codegen.passes.multiply_all import multiply_all
from tvm_neuron.codegen.passes.padding import pad_in_order, sum_through_padding
from tvm_neuron.codegen.passes.pieces import cut_pieces
from tvm_neuron.codegen.passes.polyphase import polyphase
from tvm_neuron.codegen.passes.recurrences import recurrences
from tvm_neuron.codegen.passes.reduce_once import reduce_once
from tvm_neuron.codegen.passes.reductions import split_reductions, stage_reductions
from tvm_neuron.codegen.passes.row_values import subtract_as_add
from tvm_neuron.codegen.passes.running_sums import running_sums
from tvm_neuron.codegen.passes.scale_after_products import scale_after_products
from tvm_neuron.codegen.passes.separate_parts import separate_parts
from tvm_neuron.codegen.passes.separate_pieces import separate_pieces
from tvm_neuron.codegen.passes.signals import signals
from tvm_neuron.codegen.passes.skip_padding import skip_padding
from tvm_neuron.codegen.passes.spread_results import spread_results
from tvm_neuron.codegen.passes.spread_rows import spread_rows
from tvm_neuron.codegen.passes.spread_sums import can_spread, spread_sums
from tvm_neuron.codegen.passes.sum_parts import has_parts, sum_parts
from tvm_neuron.codegen.passes.unread import drop_unread
from tvm_neuron.codegen.passes.vector_products import vector_products
from tvm_neuron.codegen.passes.whole_edges import bring_whole, store_whole
from tvm_neuron.codegen.passes.windows import split_windows
from tvm_neuron.codegen.precision import DEFAULT, Precisions
from tvm_neuron.codegen.steps import Step
from tvm_neuron.codegen.tuning import USUAL, Tuning
from tvm_neuron.errors import UnschedulableError
from tvm_neuron.hw import Device
from tvm_neuron.isa.dtypes import device_dtype, size_bytes
from tvm_neuron.schedule.expr import Axis, Expr, Index, Load, Num, rewrite
from tvm_neuron.schedule.graph import Block, Graph
from tvm_neuron.schedule.kernel import Contraction, Kernel
from tvm_neuron.schedule.operations import PARTITION_START_STEP
from tvm_neuron.schedule.rule import Context, Rule
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.sim.clock import duration_ps


@dataclass
class _Work:
    """What the steps change; `partition_of` says of each tensor which dimension lies on the partitions."""

    graph: Graph
    rules: Sequence[Rule]
    device: Device
    precisions: Precisions
    ring: int  # bytes of each partition for weights on their way
    is_quick: bool = False  # no layouts are compared
    ways: list["_Work"] = field(default_factory=list)  # copies of it with a layout each, as far as they are priced
    dims: Mapping[Tensor, int] = field(default_factory=dict)  # of tensors for which it was chosen beforehand
    partition_of: dict[Tensor, int] = field(default_factory=dict)
    kernels: list[Kernel] = field(default_factory=list)
    without_bands: Graph | None = None  # another way, where some were made
    without_scans: Graph | None = None  # the same
    before: Graph | None = None  # what it was before layouts
    has_turned: bool = False  # inputs are transposed, where the DMA could do that
    turns_inputs: bool = False  # inputs come transposed by DMA
    has_rows: bool = False  # the array moves what DMA might move in rows sooner
    moves_rows: bool = False  # DMA moves that
    joins_results: bool = False  # dimensions are joined as results count them, and not those of norms
    spreads_sums: bool = False  # the PE array adds up rows where they lie along the partitions
    sums_parts: bool = False  # the PE array puts images of few channels beside each other
    has_early: bool = False  # arithmetic runs before the last writer of what it reads
    starts_early: bool = True  # it may
    has_phases: bool = False  # folds of rows end within a convolution, or might
    takes_phases: bool = False  # they may

    @property
    def context(self) -> Context:
        """What rules are told."""
        return Context(self.device, self.partition_of)

    @cached_property
    def price_ps(self) -> int:
        """Picoseconds of the kernels of a way with their arithmetic joined; asked before further steps, if ever."""
        return kernels_ps(self.kernels, self.partition_of, self.device)


def make_kernels(
    graph: Graph,
    rules: Sequence[Rule],
    device: Device,
    precisions: Precisions = DEFAULT,
    tuning: Tuning = USUAL,
    is_quick: bool = False,
) -> tuple[list[Kernel], dict[Tensor, int]]:
    """The kernels in the order in which they run, and the partition dimension of each tensor.

    Where it is to be quick, no layouts are compared: what there is to run is the same, but may take longer.

    Raises:
        CompileError: no rule takes a block, or the PE array does not take the precision.
    """
    work = _begun(graph, rules, device, precisions, tuning, is_quick)
    last = _ways(work)[-1]
    _run(last, STEPS[_PRICED:])
    return last.kernels, last.partition_of


def kernels_by_layout(
    graph: Graph,
    rules: Sequence[Rule],
    device: Device,
    precisions: Precisions,
    tuning: Tuning,
    is_quick: bool,
) -> list[tuple[list[Kernel], dict[Tensor, int]]]:
    """As `make_kernels`, with tensors laid out block by block and, where their price is clearly less, other ways.

    And without bands and scans, whose price does not know how memory and transfers go along with them, with images side
    by side as sums, with rows moved by DMA, which may wait for others, with inputs that come transposed by DMA where
    the device does that at a rate, with nothing that starts early, which keeps more in memory, and with folds of rows
    that end within convolutions, which are more kernels.
    """
    work = _begun(graph, rules, device, precisions, tuning, is_quick)
    ways = _all_ways(work)
    if work.without_bands and len(ways[0].kernels) <= _MANY:
        windows = replace(work, graph=work.without_bands, without_scans=None)
        _run(windows, STEPS[_place_of("bands") + 1 : _JOINED])
        ways += _all_ways(windows)
    ways = _hopeful(ways)
    turned = [_laid_out(replace(way, turns_inputs=True), way.dims) for way in ways if _can_turn(way)]
    ways += [_laid_out(replace(way, moves_rows=True), way.dims) for way in ways if way.has_rows and not is_quick]
    cheapest = _cheapest(ways)
    in_turn, phased = replace(cheapest, starts_early=False), replace(cheapest, takes_phases=True)
    for way in (*ways, *turned):
        _run(way, STEPS[_PRICED:])
    ways += [way for way in turned if any(kernel.is_turned for kernel in way.kernels)]
    if not is_quick and any(way.has_early for way in ways):
        _run(in_turn, STEPS[_PRICED:])
        ways.append(in_turn)
    if not is_quick and cheapest.has_phases:
        _run(phased, STEPS[_PRICED:])
        ways += [phased] if phased.has_phases else []
    return [(way.kernels, way.partition_of) for way in ways]


def _all_ways(work: _Work) -> list[_Work]:
    """Those of each layout, and of what else there is; of a quick one the first alone."""
    if work.is_quick:
        return _ways(work)
    plain = replace(work, graph=work.without_scans) if work.without_scans else None
    joined = [replace(work, graph=_copied(work.graph), joins_results=results) for results in (False, True)]
    spread = replace(work, graph=_copied(work.graph), spreads_sums=True)
    others = list(filter(_is_joined, joined))
    others += [spread] if can_spread(work.graph, work.device) else []
    ways = _ways(work)
    usual = ways[0]
    for other in others:
        with suppress(UnschedulableError):  # no rule takes it so: there is the usual way
            best = _cheapest(_ways(other))
            ways += [best] if best.price_ps < _CLEARLY * usual.price_ps else []
    if plain:
        ways += _ways(plain)
    if has_parts(work.graph):  # their sums let rows be folded, and no price of layouts has that
        parts = replace(work, graph=_copied(work.graph), sums_parts=True)
        ways.append(_cheapest(_ways(parts)))
    best = _cheapest(ways)
    if images := image_rows(best.before or best.graph):  # the same of what windows are packed from
        with suppress(UnschedulableError):
            ways.append(_laid_out(best, {**best.dims, **images}))
    return ways


def _cheapest(ways: list[_Work]) -> _Work:
    """That of the least price, which nobody asks of a single one."""
    return ways[0] if len(ways) == 1 else min(ways, key=lambda way: way.price_ps)


def _hopeful(ways: list[_Work]) -> list[_Work]:
    """Those whose price is not so much above the least that neither tiles nor overlap could make up for it.

    All where there are few kernels: these wait for each other more than they work, and soon there is a program.
    """
    best = _cheapest(ways)
    if len(ways) == 1 or len(best.kernels) <= _MANY:
        return ways
    return [way for way in ways if way.price_ps <= _HOPELESS * best.price_ps]


def _can_turn(way: _Work) -> bool:
    return way.has_turned and not way.is_quick and bool(way.device.dma_transpose_percent)


def _begun(
    graph: Graph,
    rules: Sequence[Rule],
    device: Device,
    precisions: Precisions,
    tuning: Tuning,
    is_quick: bool,
) -> _Work:
    work = _Work(graph, rules, device, precisions, tuning.weights_bytes(device), is_quick)
    _run(work, STEPS[:_JOINED])
    return work


def _is_joined(work: _Work) -> bool:
    """Joins dimensions; whether there were any."""
    before = work.graph.blocks
    _run(work, STEPS[_JOINED : _JOINED + 1])
    return work.graph.blocks != before


def _ways(work: _Work) -> list[_Work]:
    """Copies of it for each layout, until they are priced; the first one block by block."""
    work.ways = []
    _run(work, STEPS[_JOINED + 1 : _LAYOUTS])
    return work.ways or [_laid_out(work, {})]


def _laid_out(w: _Work, dims: Mapping[Tensor, int]) -> _Work:
    """A copy where the graph's tensors lie so, with its kernels as far as they are priced."""
    before = w.before or w.graph
    way = replace(w, graph=_copied(before), before=before, dims=dims, ways=[])
    turn = _place_of("turn_inputs")
    _run(way, STEPS[_LAYOUTS:turn])
    way.has_turned = any(map(is_of_input, way.kernels))
    _run(way, STEPS[turn:_PRICED])
    return way


def _run(work: _Work, steps: Iterable[Step[_Work]]) -> None:
    for step in steps:
        if step.is_taken:
            step.run(work)


def _if_quicker(
    change: Callable[..., bool], *names: str, price: Callable[[_Work], int] | None = None, is_always_asked: bool = False
) -> Callable[[_Work], None]:
    """What changes the graph, if there is anything to change, if rules take it, and if that takes less time.

    It is told so much of the work besides. What is left as it is may take a thousand times as long if it
    `is_always_asked`, where compiling is to be quick, too.
    """

    def run(w: _Work) -> None:
        if w.is_quick and not is_always_asked:
            return
        trial = replace(w, graph=_copied(w.graph))
        if not change(trial.graph, *(getattr(w, name) for name in names)):
            return
        price_ps = price or _price_laid_out
        try:
            is_quicker = price_ps(trial) < price_ps(w)
        except UnschedulableError:  # of either: the usual way tells it
            return
        if is_quicker:
            w.graph = trial.graph

    return run


def _bands(w: _Work) -> None:
    """Bands in place of windows where they keep engines clearly less, if all takes less time then."""
    trial = replace(w, graph=_copied(w.graph))
    for block in [] if w.is_quick else w.graph.blocks:
        band = band_of(block)
        if band is not None and _sums_ps(w, band) < _CLEARLY_ALONE * _sums_ps(w, block):
            trial.graph.replace(block, band)
    price = _best_ps if len(w.graph.blocks) <= _MANY else _cut_ps
    if trial.graph.blocks != w.graph.blocks and price(trial) < price(w):
        w.without_bands, w.graph = w.graph, trial.graph


def _polyphase(w: _Work) -> None:
    """Phases where they take less time by themselves; with more weights only if DRAM does not take the longest."""
    has_rest: bool | None = None  # told by the whole graph, once it is asked

    def is_better(blocks: Sequence[Block], others: Sequence[Block]) -> bool:
        nonlocal has_rest
        before, after = (_alone(w, each) for each in (blocks, others))
        if before is None or after is None or _price(after) >= _price(before):
            return before is None and after is not None
        if _loads_ps(after) <= _loads_ps(before):
            return True
        has_rest = _has_rest(w) if has_rest is None else has_rest
        return has_rest

    polyphase(w.graph, is_better if not w.is_quick else lambda *_: True)


def _has_rest(w: _Work) -> bool:
    """Whether engines take longer than DRAM does for the weights of all kernels, inputs and outputs."""
    whole = _with_kernels(_cut(w))
    border = sum(
        tensor.elems * size_bytes(device_dtype(tensor.dtype)) for tensor in (*w.graph.inputs, *w.graph.outputs)
    )
    moved_ps = _loads_ps(whole) + duration_ps(border, w.device.dram_bytes_per_second)
    return moved_ps < kernels_ps(whole.kernels, whole.partition_of, w.device)


def _sums_ps(w: _Work, block: Block) -> float:
    """Picoseconds of a block by itself, without what brings its data in."""
    alone = _alone(w, [block])
    return inf if alone is None else _price(alone, Contraction)


def _alone(w: _Work, blocks: Sequence[Block]) -> _Work | None:
    """The kernels that blocks become by themselves, one after the other; None where no rule takes them."""
    made = dict.fromkeys(block.output for block in blocks)
    read = dict.fromkeys(tensor for block in blocks for tensor in block.sources() if tensor.value is None)
    data = [tensor for tensor in read if tensor not in made]
    here = {tensor: replace(tensor, kind="temp") for tensor in [*data, *made] if tensor.kind != "input"}
    inputs = [tensor for tensor in data if tensor.kind == "input"]
    alone = []
    for tensor in filter(here.__contains__, data):
        axes = tuple(Axis(f"d{d}", extent) for d, extent in enumerate(tensor.shape))
        index = tuple(map(Index, axes))
        inputs.append(replace(tensor, kind="input"))
        alone.append(Block(blocks[0].origin, axes, here[tensor], index, Load(inputs[-1], index)))
    alone += [replace(replace_tensors(block, here), output=here[block.output]) for block in blocks]
    try:
        return _with_kernels(_cut(replace(w, graph=Graph(inputs, [], alone))))
    except UnschedulableError:  # the usual way tells it
        return None


def _best_ps(w: _Work) -> float:
    """Picoseconds of the least layout, without an end if rules don't take it."""
    trial = replace(w, graph=_copied(w.graph))
    try:
        _run(trial, STEPS[_place_of("bands") + 1 : _JOINED])
        return _cheapest(_ways(trial)).price_ps
    except UnschedulableError:  # the usual way tells it
        return inf


def _add_in_products(w: _Work) -> None:
    """Terms as rows of a product's depth, if that takes less time."""
    trial = replace(w, graph=_copied(w.graph))
    if not w.is_quick and add_in_products(trial.graph) and _cut_ps(trial) < _cut_ps(w):
        w.graph = trial.graph


def _cut_ps(w: _Work) -> float:
    """Picoseconds with all cut into what rules take; without an end if they don't take it."""
    try:
        return _price_laid_out(_cut(w))
    except UnschedulableError:  # the usual way tells it
        return inf


def _cut(w: _Work) -> _Work:
    """A copy with contractions cut into what rules take."""
    trial = replace(w, graph=_copied(w.graph))
    cut_batches(trial.graph, w.rules, w.device)
    return trial


def _recurrences(w: _Work) -> None:
    """Steps of states by scans, if that takes less time with the moves that either way needs."""
    trial = replace(w, graph=_copied(w.graph))
    besides = recurrences(trial.graph, w.device)
    if besides and _price_laid_out(trial) < _price_laid_out(w) + besides:
        _take_scans(w, trial)


def _scan(w: _Work) -> None:
    """Cumulative sums by scans, if that takes less time with the moves that either way needs."""
    trial = replace(w, graph=_copied(w.graph))
    if running_sums(trial.graph) and _price_laid_out(trial) < _price_laid_out(w):
        _take_scans(w, trial)


def _take_scans(w: _Work, trial: _Work) -> None:
    """Goes on with the scans, and keeps what there was without any."""
    w.without_scans = w.without_scans or w.graph
    w.graph = trial.graph


def _price_laid_out(w: _Work) -> int:
    """Picoseconds of the kernels as blocks lie one after the other, and of bringing in their weights."""
    return _price(_with_kernels(w))


def _price_joined(w: _Work) -> int:
    """The same, or with dimensions joined if that is less."""
    joined = replace(w, graph=_copied(w.graph))
    return min(map(_price_laid_out, [w, joined] if _is_joined(joined) else [w]))


def _with_kernels(w: _Work) -> _Work:
    """A copy with its kernels as blocks lie one after the other."""
    trial = replace(w, graph=_copied(w.graph))
    _run(trial, STEPS[_JOINED + 1 : _place_of("choose_dims")])
    _run(trial, STEPS[_LAYOUTS:_PRICED])
    return trial


def _price(w: _Work, of: type = object) -> int:
    """Picoseconds of all kernels with such a root, and of bringing in their weights."""
    kernels = [kernel for kernel in w.kernels if isinstance(kernel.root, of)]
    return kernels_ps(kernels, w.partition_of, w.device) + _loads_ps(w, of)


def _loads_ps(w: _Work, of: type = object) -> int:
    """Picoseconds of bringing in the weights of those."""
    return sum(load_ps(kernel, w.device) for kernel in w.kernels if isinstance(kernel.root, of))


def _give_dimensions(graph: Graph) -> None:
    """Tensors without dimensions get one of a single element: memory has partitions and bytes, no bare numbers."""
    bare = {tensor for tensor in [*graph.tensors(), *graph.outputs] if not tensor.shape}
    if not bare:
        return

    def leaf(part: Num | Index | Load) -> Expr:
        return Load(part.tensor, (Num(0),)) if isinstance(part, Load) and part.tensor in bare else part

    graph.blocks = [
        replace(block, index=(Num(0),) if block.output in bare else block.index, expr=rewrite(block.expr, leaf))
        for block in graph.blocks
    ]
    for tensor in bare:
        tensor.shape = (1,)


def _canonical(graph: Graph) -> None:
    graph.blocks = [canonical(block) for block in graph.blocks]


_CLEARLY = 0.99
"""Of the price: what tiles, overlap and memory make of kernels is not in it, so that less is no reason for a layout."""

_HOPELESS = 1.5
"""Times the least price: of 69 networks with several ways, none that cost more than 1.43 times as much was the best."""

_CLEARLY_ALONE = 0.5
"""Of the price of a convolution: rows that lie side by side, and moves to other layouts, are not in it."""

_MANY = 500  # kernels: a program of so many takes a second or more to make


def _spread_slices(graph: Graph) -> bool:
    return spread_rows(graph, cuts_slices=True)


def _spread_sums(w: _Work) -> None:
    if w.spreads_sums:
        spread_sums(w.graph, w.device)


def _sum_parts(w: _Work) -> None:
    if w.sums_parts:
        sum_parts(w.graph)


def _choose_dims(w: _Work) -> None:
    if w.is_quick:
        return
    usual, *others = (_laid_out(w, dims) for dims in layouts(w.graph, w.rules, w.device))
    w.ways = [usual, *(way for way in others if way.price_ps < _CLEARLY * usual.price_ps)]


def _copied(graph: Graph) -> Graph:
    return Graph(graph.inputs, graph.outputs, graph.blocks)


def _lay_out(w: _Work) -> None:
    w.partition_of = assign_partitions(w.graph, w.dims)


def _write_through(w: _Work) -> None:
    price = pricer(w.rules, w.context)

    def price_ps(block: Block) -> int:
        try:
            return price(block)
        except UnschedulableError:  # `apply_rules` tells it of this and all others at once
            return 0

    write_through(w.graph, w.partition_of, PARTITION_START_STEP, price_ps)


def _join_moves(w: _Work) -> None:
    join_moves(w.graph, w.partition_of, pricer(w.rules, w.context))


def _apply_rules(w: _Work) -> None:
    made, refused = [], []
    for block in w.graph.blocks:
        try:
            made.append(kernels_of(block, w.rules, w.partition_of, w.device))
        except UnschedulableError as error:
            refused.append(error)
    if refused:
        refused[0].others = refused[1:]
        raise refused[0]
    w.has_rows = any(len(ways) > 1 for ways in made)
    w.kernels = list(chain.from_iterable(ways[-1] if w.moves_rows else ways[0] for ways in made))


def _turn_inputs(w: _Work) -> None:
    w.kernels = turn_inputs(w.kernels) if w.turns_inputs else w.kernels


def _start_early(w: _Work) -> None:
    kernels = start_early(w.kernels, w.partition_of) if w.starts_early else w.kernels
    w.has_early, w.kernels = len(kernels) > len(w.kernels), kernels


def _simplified(w: _Work) -> None:
    w.kernels = [simplified(kernel) for kernel in w.kernels]


def _fold_rows(w: _Work) -> None:
    w.kernels, w.has_phases = fold_rows(w.kernels, w.partition_of, w.device, w.takes_phases)


def _pack_depth(w: _Work) -> None:
    w.kernels = pack_depth(w.kernels, w.partition_of, choose_dtypes(w.kernels, w.precisions), w.device, w.ring)


def _graph(function: Callable[..., object], *names: str) -> Callable[[_Work], None]:
    """What changes the graph, told so much of the work besides."""

    def run(work: _Work) -> None:
        function(work.graph, *(getattr(work, name) for name in names))

    return run


def _kernels(function: Callable[..., list[Kernel]], *names: str) -> Callable[[_Work], None]:
    """What makes kernels of kernels."""

    def run(work: _Work) -> None:
        work.kernels = function(work.kernels, *(getattr(work, name) for name in names))

    return run


STEPS: tuple[Step[_Work], ...] = (
    Step("fold_constants", "first, so that no other sees what is known", _graph(fold_constants), True),
    Step("give_dimensions", "memory has partitions and bytes, no bare numbers", _graph(_give_dimensions), True),
    Step("multiply_all", "products of what is gathered are whole", _graph(multiply_all)),
    Step("separate_gathers", "positions that are data have no maps", _graph(separate_gathers, "device"), True),
    Step("cut_pieces", "all that follow read plain regions", _graph(cut_pieces), True),
    Step("canonical", "all that follow read sums of axes", _graph(_canonical), True),
    Step("enumerate_indices", "what is no sum of axes even so", _graph(enumerate_indices), True),
    Step("reduce_once", "what is the same reads the same", _graph(reduce_once)),
    Step("split_reductions", "no rule takes arithmetic under a sum", _graph(split_reductions), True),
    Step("subtract_as_add", "while one block makes what is subtracted", _graph(subtract_as_add)),
    Step("separate_pieces", "regions are plain, and moves are read through next", _graph(separate_pieces)),
    Step("write_products_through", "before the moves are read through", _graph(write_products_through)),
    Step("read_through", "moves are plain now, and most need not be done", _graph(read_through), True),
    Step("separate_parts", "products read the parts where they were made", _graph(separate_parts)),
    Step("polyphase", "of what moves are left, zeros and repeated rows", _polyphase),
    Step("compute_before_moves", "of what is left, arithmetic goes before", _graph(compute_before_moves)),
    Step("read_through_again", "which leaves moves that nothing follows", _graph(read_through)),
    Step("scale_after_products", "of what moves are left, products read through", _graph(scale_after_products)),
    Step("add_after_contractions", "of what moves are left, sums read through", _graph(add_after_contractions)),
    Step("join_terms", "of what moves are left, sums read through", _graph(join_terms)),
    Step("drop_unread", "of what is cut, and read elsewhere", _graph(drop_unread)),
    Step("write_moves_through", "moves into parts of other tensors", _graph(write_moves_through)),
    Step("sum_through_padding", "where padding is of what is summed over", _graph(sum_through_padding)),
    Step("pad_in_order", "moves are final but for layouts", _graph(pad_in_order)),
    Step("skip_padding", "all padding is there", _graph(skip_padding, "device"), True),
    Step("bands", "while windows are whole, and before they are cut", _bands),
    Step("add_in_products", "before terms are cut: each has its place then", _add_in_products),
    Step("cut_batches", "of what is left, by weights that no rule takes", _graph(cut_batches, "rules", "device"), True),
    Step("split_windows", "windows are final", _graph(split_windows)),
    Step("split_batches", "before layouts, which follow from what is one product", _graph(split_batches, "device")),
    Step("divide_after_products", "products are final but for their parts", _graph(divide_after_products)),
    Step("guard_rows", "of softmaxes that are divided before products", _graph(guard_rows)),
    Step("flat_heads", "moves of heads are final", _if_quicker(flat_heads)),
    Step("group_sums", "moves of groups are final", _if_quicker(group_sums, "device")),
    Step("vector_products", "products are final but for their parts", _if_quicker(vector_products)),
    Step("recurrences", "steps are plain now, and wait for each other", _recurrences),
    Step("scan", "windows and batches are final, so that what is a cumulative sum looks like one", _scan),
    Step("bring_whole", "moves of inputs are final but for layouts", _if_quicker(bring_whole)),
    Step("store_whole", "what writes outputs is final but for layouts", _if_quicker(store_whole)),
    Step("spread_slices", "rows that are moved out of what will not be spread", _if_quicker(_spread_slices)),
    Step(
        "split_scattered",
        "dimensions are final but for those that layouts scatter",
        _if_quicker(split_scattered, price=_price_joined, is_always_asked=True),
    ),
    Step(
        "join_dims",
        "another way of what follows: dimensions are final but for their number",
        _graph(join_dims, "joins_results"),
    ),
    Step("spread_rows", "dimensions are final but for those that layouts scatter", _graph(spread_rows)),
    Step("spread_results", "rows that are left long", _graph(spread_results)),
    Step("stage_reductions", "of long rows that were not spread", _graph(stage_reductions), True),
    Step("spread_sums", "another way of what follows: the last that asks how rows are read", _spread_sums),
    Step("sum_parts", "another way of what follows: before layouts, which sums have of their own", _sum_parts),
    Step("choose_dims", "before layouts, which leave the rest block by block", _choose_dims),
    Step("lay_out", "which dimension lies on the partitions", _lay_out, True),
    Step("channels_first", "what follows knows images so", _graph(channels_first, "partition_of")),
    Step("signals", "the same", _graph(signals, "partition_of")),
    Step("scale_after_moves", "where channels came to lie", _graph(scale_after_moves, "partition_of")),
    Step("write_through", "priced by the layouts", _write_through),
    Step("join_moves", "of the moves that layouts made", _join_moves),
    Step("choose_routes", "of the moves that are left", _graph(choose_routes, "partition_of", "rules", "context")),
    Step("apply_rules", "blocks become kernels", _apply_rules, True),
    Step("share_weights", "while they are the model's own arrays", _kernels(share_weights)),
    Step("turn_inputs", "before arithmetic is joined to transpositions", _turn_inputs),
    Step("fuse", "results leave PSUM once", _kernels(fuse), True),
    Step("row_statistics", "while sums are alone", _kernels(row_statistics, "partition_of", "precisions", "device")),
    Step("simplified", "arithmetic, of all that was joined", _simplified, True),
    Step("scale_ones", "what is done on the way out of PSUM is plain", _kernels(scale_ones, "partition_of")),
    Step("move_tables", "what does not fit beside a kernel", _kernels(move_tables, "partition_of"), True),
    Step("choose_operands", "in the precision asked for", _kernels(choose_operands, "precisions", "device"), True),
    Step("fold_rows", "before weights are packed otherwise", _fold_rows),
    Step("fold_windows", "of what was not folded", _kernels(fold_windows, "partition_of", "precisions", "device")),
    Step("widen_outputs", "of what was not folded", _kernels(widen_outputs, "partition_of", "device")),
    Step("pack_depth", "few channels, rows first", _pack_depth),
    Step("split_outputs", "by the steps left", _kernels(split_outputs, "device")),
    Step("pack_columns", "few channels, of what no rows suit", _kernels(pack_columns, "partition_of", "device")),
    Step("split_depth", "weights are final", _kernels(split_depth, "partition_of", "device", "ring"), True),
    Step("sum_biases", "by the array where that is idle", _kernels(sum_biases, "partition_of", "device")),
    Step("bounce_through_dram", "moves of all steps before", _kernels(bounce_through_dram, "partition_of"), True),
    Step("separate_operands", "copies for the array", _kernels(separate_operands, "partition_of", "precisions"), True),
    Step("start_early", "no more tensors of several writers", _start_early),
    Step("fill_first", "no more fills", _kernels(fill_first)),
)
"""What becomes of a subgraph until it is kernels, in order; then comes `compile_stage`."""


def _place_of(name: str) -> int:
    return [step.name for step in STEPS].index(name)


_JOINED = _place_of("join_dims")
_LAYOUTS = _place_of("lay_out")  # from here on, there may be several ways
_PRICED = _place_of("move_tables")  # what follows suits the memory: ways are compared before
