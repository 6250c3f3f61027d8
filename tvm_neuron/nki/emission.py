"""Emission: instructions on tiles that have no addresses yet, with what they need before them."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from tvm_neuron.isa import (
    Activation,
    GpsimdTensorTensor,
    Instruction,
    Matmul,
    MatmulPairs,
    Memset,
    StreamShuffle,
    TensorCopy,
    TensorTensor,
)
from tvm_neuron.isa.dtypes import MATMUL_DTYPES, WORDS
from tvm_neuron.isa.ranges import QUADRANT
from tvm_neuron.nki.carried import IN_ANY_ORDER, Carried, Iteration
from tvm_neuron.nki.contents import OTHER, SUMS, ZEROS, contents_of, is_added
from tvm_neuron.nki.index import Mask
from tvm_neuron.nki.patterns import boxes, tile_on_chip, tiles_on_chip
from tvm_neuron.nki.source import blamed, place, wrong
from tvm_neuron.nki.tensors import Tensors
from tvm_neuron.nki.view import ZERO, Axis, Tensor, View

Write = Callable[[View, Mask | None], None]
Place = tuple[int, int]  # number of a tensor, and one of its blocks


@dataclass(slots=True)
class Record:
    """An instruction whose tiles on chip begin at their block's first byte; which block each of them lies in."""

    instruction: Instruction
    places: dict[str, Place]
    at: str


@dataclass(frozen=True)
class Result:
    """What a call gives: a tile of that shape, dtype and memory, and how it is written."""

    shape: tuple[int, ...]
    dtype: str
    memory: str
    write: Write
    add: Write | None = None  # of a product: adds to what lies there


@dataclass(slots=True)
class Held:
    """A result whose tile is `own` until it is known where it goes; `group` is where it was written instead."""

    own: View
    result: Result
    mask: Mask | None
    at: str
    group: list[Record] | None = None
    target: View | None = None


@dataclass
class Emission(Tensors):
    """Instructions in groups, one for each call of the kernel."""

    groups: list[list[Record]] = field(default_factory=list)
    written: set[Place] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._moved: dict[int, Held] = {}  # by tensor: what was written elsewhere
        self._at = ""
        self._rings = [0, 0]
        self._constants: dict[Hashable, View] = {}
        self._carried = Carried()

    def emit(
        self,
        build: Callable[..., Instruction],
        views: dict[str, View],
        mask: Mask | None = None,
        kept: int = 0,
        total: View | None = None,
        **fixed: Any,
    ) -> None:
        """Instructions for views of one shape, cut by `mask`; `fixed` are further operands, views [P, 1] among them.

        The first view is written, and `total`, a view [P, 1]. Raises KernelError where that would take several
        instructions.
        """
        rank = max(view.ndim for view in views.values())
        bounds = mask.bounds(rank) if mask is not None else {}
        if any(low >= high for low, high in bounds.values()):
            return
        names = list(views)
        cut = [view.padded(rank).narrow(bounds) for view in views.values()]
        shape = cut[0].shape
        wide = [cut[0], *(view.widened(shape) for view in cut[1:])]
        columns = {
            name: value.padded(2).narrow({-2: bounds[-rank]} if -rank in bounds else {})
            for name, value in fixed.items()
            if isinstance(value, View)
        }
        for view in (*wide[1:], *columns.values()):
            self._check_written(view)
        if total is not None:
            columns["total"] = total.padded(2).narrow({-2: bounds[-rank]} if -rank in bounds else {})
            self.written.add((total.tensor.number, total.start[0]))
        wide[1:] = [self._on_every_partition(view, wide[0]) for view in wide[1:]]
        scalars = {name: tile_on_chip(view) for name, view in columns.items()}
        is_summed = build in (TensorTensor, GpsimdTensorTensor) and fixed["op"] in IN_ANY_ORDER
        for part in _by_block(wide):
            self._note(part[:1], [*part[1:], *columns.values()], is_summed)
            ends = {**dict(zip(names, part, strict=True)), **columns}
            places = {n: (view.tensor.number, view.start[0]) for n, view in ends.items() if view.tensor.memory != "hbm"}
            for number, tiles in enumerate(boxes(part, kept)):
                if number and total is not None:
                    raise wrong(f"{part[0]} takes several instructions, of which each would reduce its part", self._at)
                operands = fixed | dict(zip(names, tiles, strict=True)) | scalars
                self.groups[-1].append(Record(build(**operands), places, self._at))
            self.written.add((part[0].tensor.number, part[0].start[0]))
            if part[0].tensor.memory == "psum":
                is_zero = build is Memset and fixed["value"] == 0
                contents_of(part[0]).put(part[0], ZEROS if is_zero else OTHER)

    def _iteration(self) -> Iteration:
        """Of each affine_range that runs."""
        return ()

    def _note(self, written: Sequence[View], read: Sequence[View], is_summed: bool = False) -> None:
        """Refuses what goes from one iteration to the next; `is_summed`: but for what is added to in place."""
        if not self.dialect.stores_apart:
            return
        now, target = self._iteration(), written[0]

        def is_target(view: View) -> bool:
            return view.tensor is target.tensor and (view.start, view.axes) == (target.start, target.axes)

        with blamed(self._at):
            for view in read:
                if not (is_summed and is_target(view)):
                    self._carried.read(view, now)
            for view in written:
                self._carried.write(view, now, self._at)

    def _check_written(self, view: View) -> None:
        tensor = view.tensor
        if moved := self._moved.pop(tensor.number, None):
            self._restore(moved)
        if view.start[0] in tensor.is_zero:
            self._clear(tensor, view.start[0])
        if (tensor.number, view.start[0]) not in self.written and tensor.kind == "scratch":
            raise wrong(f"{view}, made at {tensor.made}, is read before anything is written to it", self._at)

    def _restore(self, held: Held) -> None:
        """Has a tile that was written elsewhere, and is read all the same, written as well."""
        assert held.group is not None and held.target is not None  # noqa: PT018
        self.groups.append(held.group)
        at, self._at = self._at, held.at
        held.group.clear()
        held.result.write(held.own, held.mask)
        self.emit(TensorCopy, {"result": held.target, "source": held.own.widened(held.target.shape)}, held.mask)
        self.groups.pop()
        self._at = at

    def _clear(self, tensor: Tensor, block: int) -> None:
        """Writes the zeros that a tile in PSUM was made with, where products were not added to it meanwhile."""
        tensor.is_zero.discard(block)
        axes: list[Axis] = [((0, 1, 0), tensor.partitions), ((0, 0, 1), tensor.elems)]
        whole = self.views(tensor, (block, 0, 0), axes)
        for low, high in contents_of(whole).empty_columns():
            self.emit(Memset, {"result": whole[:, low:high]}, value=0.0)

    def _on_every_partition(self, view: View, target: View) -> View:
        """A row that meets many partitions is first brought to all of them."""
        if view.tensor.memory == "hbm" or target.shape[0] == 1 or view.axes[0][0][1] or not target.axes[0][0][1]:
            return view
        if view.axes[0][0] != ZERO:
            return view  # refused by what makes tiles of it
        row = view.like(view.start, [(ZERO, 1), *view.axes[1:]])
        return self.spread(row, target.shape[0])

    def spread(self, row: View, partitions: int) -> View:
        """[partitions, *N] of a row [1, *N]: a product with ones, in PSUM if a bank holds it, else copied to SBUF.

        Whole numbers of 32 bits, which products would round, are copied to each 32 partitions by Vector.
        """
        dtype = row.tensor.dtype if row.tensor.dtype in ("float32", *MATMUL_DTYPES, *WORDS) else "float32"
        if row.tensor.memory != "sbuf" or dtype != row.tensor.dtype or not _is_line(row):
            moved = self.tensor(row.shape, dtype, "sbuf")
            self.emit(TensorCopy, {"result": moved, "source": row})
            row = moved
        if dtype in WORDS:
            return self._shuffled(row, partitions)
        ones = self.filled((1, partitions), dtype, 1.0)
        flat = row.reshape(1, row.elems)
        most, elems = self.device.psum_bank_bytes // 4, row.elems
        fits = elems <= most
        whole = self.tensor((partitions, elems), "float32" if fits else dtype, "psum" if fits else "sbuf", "spread")
        for first in range(0, elems, most):
            part = slice(first, min(first + most, elems))
            product = whole if fits else self.tensor((partitions, part.stop - first), "float32", "psum", "spread")
            self.product(product, ones, flat[:, part], True)
            if not fits:
                self.emit(
                    Activation, {"result": whole[:, part], "source": product}, scale=1.0, bias=0.0, function="copy"
                )
        return whole.reshape(partitions, *row.shape[1:])

    def _shuffled(self, row: View, partitions: int) -> View:
        whole = self.tensor((partitions, row.elems), row.tensor.dtype, "sbuf", "spread")
        flat = row.reshape(1, row.elems)
        for first in range(0, partitions, QUADRANT):
            part = whole[first : min(first + QUADRANT, partitions)]
            self.emit(StreamShuffle, {"result": part}, source=flat, order=(0,) * QUADRANT)
        return whole.reshape(partitions, *row.shape[1:])

    def product(
        self, psum: View, stationary: View, moving: View, is_first: bool, mask: Mask | None = None,
        build: type[Matmul | MatmulPairs] = Matmul,
    ) -> None:  # fmt: skip
        """psum[M, *N] (+)= stationary[K, M].T @ moving[K, *N]; the first onto a place always overwrites."""
        bounds = mask.bounds(moving.ndim) if mask is not None else {}
        if any(low >= high for low, high in bounds.values()):
            return
        free = {axis: bound for axis, bound in bounds.items() if -axis < moving.ndim}
        if set(bounds) - set(free):
            raise wrong("the mask of a product bounds its first axis; slice the operands instead", self._at)
        stationary, moving, psum = stationary.narrow({}), moving.narrow(free), psum.narrow(free)
        for view in (stationary, moving):
            self._check_written(view)
        left = tile_on_chip(stationary, stationary.ndim - 1 if build is MatmulPairs else 0)
        if build is MatmulPairs:
            right, out = (tile_on_chip(view, view.ndim - 1) for view in (moving, psum))
        else:  # axes that only one of them has joined are those of both
            right, out = tiles_on_chip(moving, psum)
        ends = {"stationary": stationary, "moving": moving, "psum": psum}
        places = {name: (view.tensor.number, view.start[0]) for name, view in ends.items()}
        made = build(left, right, out, () if is_first or not is_added(psum) else None)
        self._note([psum], [stationary, moving])
        contents_of(psum).put(psum, SUMS)
        self.groups[-1].append(Record(made, places, self._at))
        self.written.add(places["psum"])

    def row(
        self, build: Callable[..., Instruction], targets: Sequence[View], *sources: View, mask: Mask | None = None,
        is_cut: bool = False,
    ) -> None:  # fmt: skip
        """One instruction from tiles to tiles of other shapes; `build` takes them in the order of its operands.

        The mask chooses partitions of all of them, and with `is_cut` elements of the first source.
        """
        bounds = mask.bounds(sources[0].ndim) if mask is not None else {}
        if any(low >= high for low, high in bounds.values()):
            return
        rows = bounds.get(-sources[0].ndim)
        if not is_cut and set(bounds) - {-sources[0].ndim}:
            raise wrong(
                f"a mask that leaves out elements of {sources[0]} for {targets[0]}; slice the operands", self._at
            )
        views = [view.narrow({-view.ndim: rows} if rows else {}) for view in (*targets, *sources[1:])]
        views.insert(len(targets), sources[0].narrow(bounds))
        targets, sources = views[: len(targets)], tuple(views[len(targets) :])
        for source in sources:
            self._check_written(source)
        self._note(targets, sources)
        made = build(*(tile_on_chip(view) for view in views))
        ends = zip((name for name, *_ in made.tiles()), views, strict=True)
        places = {name: (view.tensor.number, view.start[0]) for name, view in ends}
        self.groups[-1].append(Record(made, places, self._at))
        self.written |= {(target.tensor.number, target.start[0]) for target in targets}
        for target in targets:
            if target.tensor.memory == "psum":
                contents_of(target).put(target, OTHER)

    def start(self, view: View) -> None:
        """Begins what is written without a call of the kernel's for it: to bring `view` somewhere else."""
        self._at = place()
        self.groups.append([])
        self._check_written(view)

    def once(self, key: Hashable, make: Callable[[], View]) -> View:
        """The tile that `make` writes, made when it is first asked for, and before all else."""
        if key not in self._constants:
            group, at = list[Record](), self._at
            self.groups.insert(0, group)
            self.groups.append(group)
            self._at = place()
            self._constants[key] = make()
            self.groups.pop()
            self._at = at
        return self._constants[key]

    def filled(self, shape: tuple[int, ...], dtype: str, value: float) -> View:
        """A tile of one number, the same wherever it is asked for."""

        def make() -> View:
            found = self.tensor(shape, dtype, "sbuf")
            self.emit(Memset, {"result": found}, value=value)
            return found

        return self.once(("filled", shape, dtype, value), make)

    def ring(self, is_store: bool) -> int:
        """The DMA queue of the next transfer: loads and stores, which wait for other things, have four each."""
        self._rings[is_store] += 1
        return self._rings[is_store] % 4 + 4 * is_store

    @property
    def records(self) -> list[Record]:
        """All instructions in order."""
        return [record for group in self.groups for record in group]


def _is_line(view: View) -> bool:
    """Whether one step leads from each element to the next, over all axes."""
    long = [(step, count) for step, count in view.axes if count > 1]
    return all(outer == (0, 0, step[2] * count) for (outer, _), (step, count) in pairwise(long))


def _by_block(views: list[View]) -> Iterator[list[View]]:
    """The views, unrolled along axes that go from one logical tile to the next."""
    for axis in range(views[0].ndim):
        count = views[0].shape[axis]
        if any(view.axes[axis][0][0] for view in views):
            for at in range(count):
                yield from _by_block([view[(slice(None),) * axis + (at,)] for view in views])
            return
    yield views
