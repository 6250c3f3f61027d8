"""A NEFF as a function: what the runtime module calls when the graph reaches a Neuron subgraph."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from weakref import WeakValueDictionary

import tvm

from tvm_neuron import neff, sim
from tvm_neuron.errors import InputError
from tvm_neuron.isa.dtypes import DTYPES
from tvm_neuron.runtime import shared
from tvm_neuron.runtime.integers import narrowed, widened
from tvm_neuron.runtime.tensors import as_numpy
from tvm_neuron.runtime.transfers import count_call

_core: ContextVar[int] = ContextVar("tvm_neuron_core", default=0)


@contextmanager
def on_core(number: int) -> Iterator[None]:
    """Programs called inside the `with` block run on that core."""
    token = _core.set(number)
    try:
        yield
    finally:
        _core.reset(token)


def each_core(count: int) -> Iterator[int]:
    """From 0; programs called in the body of the loop run on so many cores in turn, other ones for each core here."""
    here = _core.get()
    for number in range(count):
        with on_core(here * count + number):
            yield number


class _Core:
    """A modelled core, or all of a pipeline, with programs in memory; it works on one call at a time."""

    def __init__(self, pipeline: neff.Pipeline) -> None:
        self.lock = threading.Lock()
        self.machine = sim.Cores(pipeline)


class LoadedProgram:
    """One NEFF, on every core that calls it; it is read at the first call, and a core serves one call at a time.

    Called with the inputs and then the outputs, as TVM passes them: tensors on the CPU in the order, shape and dtype
    that the NEFF states. Inputs are converted to their dtype in device memory; the outputs are written in place.
    """

    def __init__(self, symbol: str, data: Callable[[], bytes]) -> None:
        """`data` gives the NEFF, once."""
        self._symbol = symbol
        self._data: Callable[[], bytes] | None = data
        self._loading = threading.Lock()
        self._cores: dict[int, _Core] = {}
        self._neff: neff.Pipeline

    def __call__(self, *tensors: tvm.runtime.Tensor) -> None:
        """Run once; see the class."""
        begin = time.perf_counter()
        core = self._loaded(_core.get())
        infos = (*self._neff.inputs, *self._neff.outputs)
        if len(tensors) != len(infos):
            raise InputError(f"program '{self._symbol}' takes {len(infos)} tensors; got {len(tensors)}")
        arrays = {info.name: as_numpy(tensor) for info, tensor in zip(infos, tensors, strict=True)}
        in_memory = core.machine.inputs
        inputs = {}
        for info in self._neff.inputs:
            there = in_memory[info.name]
            value = narrowed(f"input '{info.name}'", arrays[info.name], DTYPES[there.dtype])
            inputs[info.name] = value.reshape(there.shape)
        with core.lock:
            results = core.machine.run(inputs)
        for info in self._neff.outputs:
            array = arrays[info.name]
            array[...] = widened(f"output '{info.name}'", results[info.name], array.dtype).reshape(array.shape)
        count_call(inputs.values(), results.values(), time.perf_counter() - begin)

    def _loaded(self, number: int) -> _Core:
        with self._loading:
            if self._data is not None:
                self._neff = shared.read(self._data())
                self._data = None
            if number not in self._cores:
                self._cores[number] = _Core(self._neff)
            return self._cores[number]

    def forget_threads(self) -> None:
        """In the child of a fork."""
        self._loading, self._cores = threading.Lock(), {}


_programs: WeakValueDictionary[tuple[int, str], LoadedProgram] = WeakValueDictionary()
_finding = threading.Lock()


def load(module: int, symbol: str, data: Callable[[], bytes]) -> Callable[..., None]:
    """The function of a module's NEFF; registered as `tvm_neuron.runtime.load` for the C++ module.

    All who hold it share one program in memory, which goes with the last of them.
    """
    with _finding:
        program = _programs.get((module, symbol))
        if program is None:
            program = _programs[module, symbol] = LoadedProgram(symbol, data)
    return lambda *tensors: program(*tensors)


def _forget_parents_threads() -> None:
    """In the child of a fork: locks may be held by threads that are gone, and cores be amid their work."""
    global _finding
    _finding = threading.Lock()
    for program in list(_programs.values()):
        program.forget_threads()


os.register_at_fork(after_in_child=_forget_parents_threads)
