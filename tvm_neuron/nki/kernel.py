"""Kernel: a function of the language that is traced, placed, checked and run on the model when it is called."""

import functools
import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.errors import NeuronError
from tvm_neuron.hw import Device, load_device, load_instance
from tvm_neuron.isa.dtypes import device_dtype
from tvm_neuron.neff import Neff, TensorInfo
from tvm_neuron.nki.allocate import Assembled, assemble
from tvm_neuron.nki.cores import check_cores, core_of, launched
from tvm_neuron.nki.dialects import BETA2, Dialect
from tvm_neuron.nki.dtypes import as_held, dtype_name
from tvm_neuron.nki.exchanged import check_exchanged
from tvm_neuron.nki.source import raised, wrong
from tvm_neuron.nki.tile import Tile
from tvm_neuron.nki.trace import USUAL_CHIP, Trace, begin, end, is_tracing
from tvm_neuron.nki.unwritten import Unwritten, unwritten
from tvm_neuron.nki.view import View
from tvm_neuron.program import Program
from tvm_neuron.program.verify import verify
from tvm_neuron.runtime.version import VERSION
from tvm_neuron.sim import Machine, Timing, ends_ps, time_program
from tvm_neuron.sim.memory import NAN_BYTE

Array = NDArray[Any]


@dataclass(frozen=True)
class Traced:
    """A kernel as a program for `device`: its inputs, and the views that it returns (one, or a tuple of them)."""

    name: str
    device: Device
    assembled: Assembled
    inputs: Mapping[str, Array]
    returned: Any
    unwritten: Unwritten
    trace_cores: Callable[[], tuple[Program, ...]]  # see `by_core`

    @cached_property
    def by_core(self) -> tuple[Program, ...]:
        """What each core of a grid over several does, none of a grid on one core: the kernel is traced again for it."""
        return self.trace_cores()

    def run(self, mode: str = "nest") -> Any:
        """The values that it returns, as arrays; `mode` as of `Machine`.

        Raises:
            KernelError: what the kernel reads without having written it reaches an output.
        """
        arrays = self._values(mode)
        if self.unwritten.may_show(arrays):
            self.unwritten.check(arrays, self._values(mode, blank=0))
        return arrays if isinstance(self.returned, tuple | list) else arrays[0] if arrays else None

    def _values(self, mode: str, blank: int = NAN_BYTE) -> tuple[Array, ...]:
        """What it returns, where memory that holds nothing yet consists of `blank` bytes."""
        machine = Machine(self.assembled.program, self.device, self.assembled.weights, blank=blank)
        found, names = machine.run(self.inputs, mode), self.assembled.names
        return tuple(found[names[view.tensor.number]].reshape(view.shape) for view in each_of(self.returned))

    def neff(self) -> Neff:
        """The same as a NEFF."""
        program, shapes = self.assembled.program, {"input": list[TensorInfo](), "output": list[TensorInfo]()}
        for tensor in program.tensors:
            if tensor.kind in shapes:
                shapes[tensor.kind].append(TensorInfo(tensor.name, tensor.shape, tensor.dtype))
        return Neff(
            name=self.name, program=program, device=self.device, weights=self.assembled.weights,
            inputs=tuple(shapes["input"]), outputs=tuple(shapes["output"]), options={}, compiler_version=VERSION,
        )  # fmt: skip

    def time(self) -> Timing:
        """What one run takes on one modelled core, one instance after the other."""
        return time_program(self.assembled.program, self.device)

    def latency_ps(self) -> int:
        """Until the last core of its grid is through, if all begin together and share the DRAM of their chip.

        Raises:
            DeviceError: the grid is over several cores, and it is not known what those of this device share.
        """
        if not self.by_core:
            return self.time().total_ps
        return max(ends_ps(self.by_core, self.device, load_instance("", self.device)))


class Kernel:
    """A kernel. Calling it runs it on the model; `kernel[grid](...)` does so for each instance of a grid.

    In Beta 2 and later `kernel[n]` has one instance on each of n cores.
    """

    def __init__(
        self, function: Callable[..., Any], chip: str = USUAL_CHIP, grid: tuple[int, ...] = (), dialect: Dialect = BETA2
    ) -> None:
        functools.update_wrapper(self, function)
        self.name: str = function.__name__
        self.function, self.chip, self.grid, self.dialect = function, chip, grid, dialect

    def __getitem__(self, grid: Any) -> "Kernel":
        sizes = grid if isinstance(grid, tuple) else (grid,)
        if any(not hasattr(size, "__index__") or size < 0 for size in sizes):
            raise wrong(f"kernel '{self.name}' is launched on a grid of {list(sizes)}: give whole numbers from 0 on")
        grid = launched(sizes, self.dialect.launches_cores)
        return type(self)(self.function, self.chip, grid, self.dialect)

    def on(self, chip: str) -> "Kernel":
        """The same kernel for another chip, by its name or the file that describes it."""
        return type(self)(self.function, chip, self.grid, self.dialect)

    def __call__(self, *args: Any, **words: Any) -> Any:
        """The values that it returns, as arrays; see `trace`. Called by another kernel, it is a part of that."""
        if is_tracing():
            return self.function(*args, **words)
        return self.trace(*args, **words).run()

    def _run(self, given: Sequence[Any], named: Mapping[str, Any]) -> Any:
        try:
            return self.function(*given, **named)
        except NeuronError:
            raise
        except Exception as error:
            raise wrong(f"kernel '{self.name}' ends in {type(error).__name__}: {error}", raised(error)) from error

    def trace(self, *args: Any, **words: Any) -> Traced:
        """The kernel as a program for these arguments: arrays are tensors, everything else is a constant.

        Raises:
            KernelError: the kernel breaks a rule of the language or of the chip.
        """
        try:
            inspect.signature(self.function).bind(*args, **words)
        except TypeError as error:
            raise wrong(f"kernel '{self.name}' takes {inspect.signature(self.function)}: {error}") from error
        check_cores(self.name, self.grid, load_device(self.chip))
        every = list(itertools.product(*(range(size) for size in self.grid)))
        trace, inputs, returned = self._traced(args, words, every)
        outputs = each_of(returned)
        _check_outputs(trace, outputs)
        blanks = unwritten(trace, outputs)
        assembled = assemble(trace, {view.tensor.number for view in outputs})
        verify(assembled.program, trace.device)
        alone = functools.partial(self._by_core, args, words, every)
        traced = Traced(self.name, trace.device, assembled, inputs, returned, blanks, alone)
        for watcher in _watchers:
            watcher(traced)
        return traced

    def _by_core(
        self, args: Sequence[Any], words: Mapping[str, Any], programs: Sequence[tuple[int, ...]]
    ) -> tuple[Program, ...]:
        """The programs of several cores, for their time: each has only some instances, and so writes only a part."""
        by_core: dict[int, list[tuple[int, ...]]] = {}
        for program in programs:
            by_core.setdefault(core_of(program, self.grid), []).append(program)
        if len(by_core) == 1:
            return ()
        return tuple(self._of_core(args, words, by_core[core]) for core in sorted(by_core))

    def _of_core(self, args: Sequence[Any], words: Mapping[str, Any], programs: Sequence[tuple[int, ...]]) -> Program:
        trace, _, returned = self._traced(args, words, programs)
        return assemble(trace, {view.tensor.number for view in each_of(returned)}).program

    def _traced(
        self, args: Sequence[Any], words: Mapping[str, Any], programs: Iterable[tuple[int, ...]]
    ) -> tuple[Trace, dict[str, Array], Any]:
        """What such instances of the grid do, the arrays that it is given, and what the last one returns."""
        trace = Trace(load_device(self.chip), self.dialect, Tile, grid=tuple(map(int, self.grid)))
        inputs: dict[str, Array] = {}
        begin(trace)
        try:
            given = [_given(trace, inputs, f"arg{at}", value) for at, value in enumerate(args)]
            named = {name: _given(trace, inputs, name, value) for name, value in words.items()}
            returned: Any = None
            cores: list[int] = []  # of each group of the trace
            for program in programs:
                trace.program, trace.next_shared = program, 0
                returned = self._run(given, named)
                trace.settle()
                cores += [core_of(program, self.grid)] * (len(trace.groups) - len(cores))
        finally:
            end()
        if len(set(cores)) > 1:
            check_exchanged(trace, cores)
        return trace, inputs, returned


_watchers: list[Callable[[Traced], None]] = []


@contextmanager
def watch(watcher: Callable[[Traced], None]) -> Iterator[None]:
    """Calls `watcher` with every kernel that is traced inside, also where kernels are called by other code."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)


def each_of(returned: Any) -> list[View]:
    """What a kernel returns, one or several tensors."""
    every = list(returned) if isinstance(returned, tuple | list) else [] if returned is None else [returned]
    for each in every:
        if not isinstance(each, View) or each.tensor.memory != "hbm":
            raise wrong(
                f"the kernel returns {each}; it returns tensors in device memory, made with buffer=nl.shared_hbm"
            )
    return every


def _check_outputs(trace: Trace, outputs: list[View]) -> None:
    if not outputs:
        raise wrong("the kernel returns nothing; it returns tensors in device memory, made with buffer=nl.shared_hbm")
    for view in outputs:
        if not view.is_whole:
            raise wrong(
                f"the kernel returns {view}, which is a part of a tensor of {view.tensor.elems} elements or has them "
                "in another order; return a tensor as it was made (nl.ndarray of the shape that is meant)",
                view.tensor.made,
            )
        if (view.tensor.number, 0) not in trace.written:
            raise wrong(f"the kernel returns {view}, but writes nothing to it", view.tensor.made)


def _given(trace: Trace, inputs: dict[str, Array], name: str, value: Any) -> Any:
    """The tensor for an array, else the value itself."""
    if isinstance(value, type) or not hasattr(value, "__array__") or np.ndim(value) == 0:
        return value
    array = np.asarray(value)
    dtype = device_dtype(dtype_name(array.dtype) if array.dtype != np.int64 else "int64")
    inputs[name] = as_held(f"argument {name}", array, dtype)
    return trace.tensor(array.shape, dtype, "hbm", name, kind="input")


def jit(function: Any = None, mode: str = "auto", dialect: Dialect = BETA2, **words: Any) -> Any:
    """Makes a kernel of a function; a kernel that calls it runs it as a part of itself when mode is "trace"."""
    if function is None:
        return functools.partial(jit, mode=mode, dialect=dialect, **words)
    if not callable(function):
        raise wrong(f"nki.jit of {type(function).__name__} {function}; it makes a kernel of a function")
    if mode == "trace":
        return function
    return function if isinstance(function, Kernel) else Kernel(function, dialect=dialect)
