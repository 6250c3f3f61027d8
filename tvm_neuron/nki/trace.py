"""Trace: what a kernel does, as instructions in the order of its calls, on memory that has no addresses yet.

A call that gives a tile is held back until the next one: where its tile is assigned at once (`t[i] = f(...)`), the
instruction writes there. If the tile is read later all the same, it is written first, and copied there from it.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from numpy.typing import NDArray

from tvm_neuron.hw import Device
from tvm_neuron.isa import Activation, Instruction, Matmul, Memset, TensorCopy
from tvm_neuron.isa.dtypes import MATMUL_DTYPES
from tvm_neuron.nki.dialects import Dialect
from tvm_neuron.nki.index import Mask, as_mask
from tvm_neuron.nki.patterns import boxes, tile_on_chip
from tvm_neuron.nki.source import blamed, place, wrong
from tvm_neuron.nki.view import ZERO, Axis, Tensor, View

Array = NDArray[Any]
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
class _Held:
    """A result whose tile is `own` until it is known where it goes; `group` is where it was written instead."""

    own: View
    result: Result
    mask: Mask | None
    at: str
    group: list[Record] | None = None
    target: View | None = None


@dataclass
class Trace:
    """What one launch of a kernel does on `device`; `views` is the class of the views that the kernel gets."""

    device: Device
    dialect: Dialect
    views: type[View] = View
    tensors: list[Tensor] = field(default_factory=list)
    shapes: dict[int, tuple[int, ...]] = field(default_factory=dict)  # of tensors in device memory
    constants: dict[int, Array] = field(default_factory=dict)
    groups: list[list[Record]] = field(default_factory=list)
    written: set[Place] = field(default_factory=set)
    grid: tuple[int, ...] = ()
    program: tuple[int, ...] = ()  # which instance of the grid runs
    shared: list[View] = field(default_factory=list)  # tensors that all instances share, in the order of their calls
    next_shared: int = 0

    def __post_init__(self) -> None:
        self._held: _Held | None = None
        self._moved: dict[int, _Held] = {}  # by tensor: what was written elsewhere
        self._at = ""
        self._rings = [0, 0]
        self._constants: dict[Hashable, View] = {}

    def tensor(
        self, shape: Sequence[int], dtype: str, memory: str, name: str = "", partition_axis: int = 0, kind: str = ""
    ) -> View:
        """A new tensor, which holds nothing yet."""
        if not shape or any(count < 1 for count in shape):
            raise wrong(f"a tensor of shape {list(shape)}; every axis must be at least 1")
        number = len(self.tensors)
        if memory == "hbm":
            made = Tensor(number, name, memory, dtype, 1, 1, prod(shape), kind or "scratch", place())
            self.shapes[number] = tuple(shape)
            axes = _contiguous(shape, 2)
        else:
            blocks, partitions, free = shape[:partition_axis], shape[partition_axis], shape[partition_axis + 1 :]
            if partitions > self.device.partitions:
                raise wrong(
                    f"a tile of shape {list(shape)} has {partitions} partitions; {self.device.name} has "
                    f"{self.device.partitions}: use smaller tiles, or mark the partitions with par_dim"
                )
            made = Tensor(number, name, memory, dtype, prod(blocks), partitions, prod(free), made=place())
            axes = [*_contiguous(blocks, 0), ((0, 1, 0), partitions), *_contiguous(free, 2)]
        self.tensors.append(made)
        return self.views(made, ZERO, axes)

    def blank(self, memory: str, dtype: str, partitions: int, elems: int) -> int:
        """The number of a new tensor [partitions, elems] that no call of the kernel's makes."""
        made = self.tensor((partitions, elems), dtype, memory, "spilled" if memory == "hbm" else "")
        made.tensor.name += str(made.tensor.number) if memory == "hbm" else ""
        return made.tensor.number

    def constant(self, values: Array, dtype: str) -> View:
        """A tensor in device memory that holds `values`."""
        found = self.tensor(values.shape, dtype, "hbm", kind="weight")
        self.constants[found.tensor.number] = values
        return found

    def share(self, shape: tuple[int, ...], dtype: str, name: str) -> View:
        """A tensor in device memory that is one for all instances of the grid: the same call gives the same."""
        at, self.next_shared = self.next_shared, self.next_shared + 1
        if at == len(self.shared):
            self.shared.append(self.tensor(shape, dtype, "hbm", name))
        found = self.shared[at]
        if (found.shape, found.tensor.dtype) != (shape, dtype):
            raise wrong(f"shared tensor {at} is {dtype}{list(shape)} here; in another instance it is {found}")
        return found

    def hold(self, result: Result, mask: Any = None) -> View:
        """The tile of a call's result, which is written when it is known where."""
        self.settle()
        memory = result.memory
        own = self.tensor(result.shape, result.dtype, memory)
        self._held = _Held(own, result, as_mask(mask), place())
        return own

    def settle(self) -> None:
        """Writes what is held back."""
        held, self._held = self._held, None
        if held:
            self._write(held, held.own)

    def assign(self, target: View, value: View) -> bool:
        """Has what is held back written to `target`, if that is `value`; whether it is."""
        held = self._held
        if held is None or held.own is not value:
            return False
        if held.result.memory == "psum" != target.tensor.memory:
            return False  # the Tensor engine writes there only
        self._held = None
        held.target = target
        self._write(held, target)
        held.group = self.groups[-1]
        self._moved[value.tensor.number] = held
        return True

    def accumulate(self, target: View, value: View) -> bool:
        """Has what is held back added to `target`, if that is `value` and a product; whether it is."""
        held = self._held
        if held is None or held.own is not value or held.result.add is None or target.tensor.memory != "psum":
            return False
        self._held = None
        self._at = held.at
        self.groups.append([])
        with blamed(held.at):
            held.result.add(target, held.mask)
        return True

    def do(self, result: Result, target: View, mask: Any = None) -> None:
        """Writes a result to `target` now."""
        self.settle()
        self._write(_Held(target, result, as_mask(mask), place()), target)

    def _write(self, held: _Held, target: View) -> None:
        self._at = held.at
        self.groups.append([])
        with blamed(held.at):
            held.result.write(target, held.mask)

    def _restore(self, held: _Held) -> None:
        """Has a tile that was written elsewhere, and is read all the same, written as well."""
        assert held.group is not None and held.target is not None  # noqa: PT018
        self.groups.append(held.group)
        at, self._at = self._at, held.at
        held.group.clear()
        held.result.write(held.own, held.mask)
        self.emit(TensorCopy, {"result": held.target, "source": held.own.widened(held.target.shape)}, held.mask)
        self.groups.pop()
        self._at = at

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
        bounds = mask.bounds() if mask is not None else {}
        if any(low >= high for low, high in bounds.values()):
            return
        names = list(views)
        rank = max(view.ndim for view in views.values())
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
        for part in _by_block(wide):
            ends = {**dict(zip(names, part, strict=True)), **columns}
            places = {n: (view.tensor.number, view.start[0]) for n, view in ends.items() if view.tensor.memory != "hbm"}
            for number, tiles in enumerate(boxes(part, kept)):
                if number and total is not None:
                    raise wrong(f"{part[0]} takes several instructions, of which each would reduce its part", self._at)
                operands = fixed | dict(zip(names, tiles, strict=True)) | scalars
                self.groups[-1].append(Record(build(**operands), places, self._at))
            self.written.add((part[0].tensor.number, part[0].start[0]))

    def _check_written(self, view: View) -> None:
        tensor = view.tensor
        if moved := self._moved.pop(tensor.number, None):
            self._restore(moved)
        if view.start[0] in tensor.is_zero:
            self._clear(tensor, view.start[0])
        if (tensor.number, view.start[0]) not in self.written and tensor.kind == "scratch":
            raise wrong(f"{view}, made at {tensor.made}, is read before anything is written to it", self._at)

    def _clear(self, tensor: Tensor, block: int) -> None:
        """Writes the zeros that a tile in PSUM was made with, unless products were added to it meanwhile."""
        tensor.is_zero.discard(block)
        if not any(start[0] == block for start, _ in tensor.begun):
            axes: list[Axis] = [((0, 1, 0), tensor.partitions), ((0, 0, 1), tensor.elems)]
            self.emit(Memset, {"result": self.views(tensor, (block, 0, 0), axes)}, value=0.0)

    def _on_every_partition(self, view: View, target: View) -> View:
        """A row that meets many partitions is first brought to all of them."""
        if view.tensor.memory == "hbm" or target.shape[0] == 1 or view.axes[0][0][1] or not target.axes[0][0][1]:
            return view
        if view.axes[0][0] != ZERO:
            return view  # refused by what makes tiles of it
        row = view.like(view.start, [(ZERO, 1), *view.axes[1:]])
        return self.spread(row, target.shape[0])

    def once(self, key: Hashable, make: Callable[[], View]) -> View:
        """The tile that `make` writes, made when it is first asked for."""
        if key not in self._constants:
            if not self.groups or self._held is not None:
                self.settle()
                self.groups.append([])
            self._at = place()
            self._constants[key] = make()
        return self._constants[key]

    def filled(self, shape: tuple[int, ...], dtype: str, value: float) -> View:
        """A tile of one number, the same wherever it is asked for."""
        return self.once(("filled", shape, dtype, value), lambda: self._filled(shape, dtype, value))

    def _filled(self, shape: tuple[int, ...], dtype: str, value: float) -> View:
        found = self.tensor(shape, dtype, "sbuf")
        self.emit(Memset, {"result": found}, value=value)
        return found

    def spread(self, row: View, partitions: int) -> View:
        """[partitions, *N] of a row [1, *N]: a product with ones, in PSUM if a bank holds it, else copied to SBUF."""
        dtype = row.tensor.dtype if row.tensor.dtype in ("float32", *MATMUL_DTYPES) else "float32"
        if row.tensor.memory != "sbuf" or dtype != row.tensor.dtype:
            moved = self.tensor(row.shape, dtype, "sbuf")
            self.emit(TensorCopy, {"result": moved, "source": row})
            row = moved
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

    def product(self, psum: View, stationary: View, moving: View, is_first: bool, mask: Mask | None = None) -> None:
        """psum[M, *N] (+)= stationary[K, M].T @ moving[K, *N]; the first onto a place always overwrites."""
        bounds = mask.bounds() if mask is not None else {}
        if any(low >= high for low, high in bounds.values()):
            return
        free = {axis: bound for axis, bound in bounds.items() if -axis < moving.ndim}
        if set(bounds) - set(free):
            raise wrong("the mask of a product bounds its first axis; slice the operands instead", self._at)
        stationary, moving, psum = stationary.narrow({}), moving.narrow(free), psum.narrow(free)
        for view in (stationary, moving):
            self._check_written(view)
        left, right, out = tile_on_chip(stationary), tile_on_chip(moving), tile_on_chip(psum)
        ends = {"stationary": stationary, "moving": moving, "psum": psum}
        places = {name: (view.tensor.number, view.start[0]) for name, view in ends.items()}
        begun, key = psum.tensor.begun, (psum.start, psum.axes)
        made = Matmul(left, right, out, () if is_first or key not in begun else None)
        begun.add(key)
        self.groups[-1].append(Record(made, places, self._at))
        self.written.add(places["psum"])

    def row(self, build: Callable[[Any, Any], Instruction], target: View, source: View) -> None:
        """One instruction from a tile to a tile of another shape."""
        self._check_written(source)
        out, tile = tile_on_chip(target.narrow({})), tile_on_chip(source.narrow({}))
        made = build(out, tile)
        ends = zip((name for name, *_ in made.tiles()), (target, source), strict=True)
        places = {name: (view.tensor.number, view.start[0]) for name, view in ends}
        self.groups[-1].append(Record(made, places, self._at))
        self.written.add((target.tensor.number, target.start[0]))

    def start(self, view: View) -> None:
        """Begins what is written without a call of the kernel's for it: to bring `view` somewhere else."""
        self._at = place()
        self.groups.append([])
        self._check_written(view)

    def ring(self, is_store: bool) -> int:
        """The DMA queue of the next transfer: loads and stores, which wait for other things, have four each."""
        self._rings[is_store] += 1
        return self._rings[is_store] % 4 + 4 * is_store

    @property
    def records(self) -> list[Record]:
        """All instructions in order."""
        return [record for group in self.groups for record in group]


def _by_block(views: list[View]) -> Iterator[list[View]]:
    """The views, unrolled along axes that go from one logical tile to the next."""
    for axis in range(views[0].ndim):
        count = views[0].shape[axis]
        if any(view.axes[axis][0][0] for view in views):
            for at in range(count):
                yield from _by_block([view[(slice(None),) * axis + (at,)] for view in views])
            return
    yield views


def _contiguous(shape: Sequence[int], part: int) -> list[Axis]:
    axes, step = list[Axis](), 1
    for count in reversed(shape):
        vector = [0, 0, 0]
        vector[part] = step
        axes.append(((vector[0], vector[1], vector[2]), count))
        step *= count
    return axes[::-1]


_traces: list[Trace] = []


def current() -> Trace:
    """The trace of the kernel that runs.

    Raises:
        KernelError: none runs.
    """
    if not _traces:
        raise wrong("a call of the kernel language outside of a kernel: decorate the function with nki.jit and call it")
    return _traces[-1]


def is_tracing() -> bool:
    """Whether a kernel runs."""
    return bool(_traces)


def begin(trace: Trace) -> None:
    """Has calls go to `trace` until `end`."""
    _traces.append(trace)


def end() -> None:
    """The opposite of `begin`."""
    _traces.pop()
