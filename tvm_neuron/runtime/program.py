"""A NEFF as a function: what the runtime module calls when the graph reaches a Neuron subgraph."""

import threading
from collections.abc import Callable

import tvm

from tvm_neuron import neff, sim
from tvm_neuron.errors import InputError
from tvm_neuron.isa.dtypes import DTYPES
from tvm_neuron.runtime.integers import narrowed, widened
from tvm_neuron.runtime.tensors import as_numpy


class LoadedProgram:
    """One NEFF on one modelled core; the NEFF is read at the first call, and calls are served one at a time.

    Called with the inputs and then the outputs, as TVM passes them: tensors on the CPU in the order, shape and dtype
    that the NEFF states. Inputs are converted to their dtype in device memory; the outputs are written in place.
    """

    def __init__(self, symbol: str, data: bytes) -> None:
        self._symbol = symbol
        self._data: bytes | None = data
        self._lock = threading.Lock()
        self._machine: sim.Machine
        self._neff: neff.Neff

    def __call__(self, *tensors: tvm.runtime.Tensor) -> None:
        """Run once; see the class."""
        with self._lock:
            self._load()
            infos = (*self._neff.inputs, *self._neff.outputs)
            if len(tensors) != len(infos):
                raise InputError(f"program '{self._symbol}' takes {len(infos)} tensors; got {len(tensors)}")
            arrays = {info.name: as_numpy(tensor) for info, tensor in zip(infos, tensors, strict=True)}
            in_memory = {tensor.name: tensor for tensor in self._neff.program.tensors}
            inputs = {}
            for info in self._neff.inputs:
                there = in_memory[info.name]
                value = narrowed(f"input '{info.name}'", arrays[info.name], DTYPES[there.dtype])
                inputs[info.name] = value.reshape(there.shape)
            results = self._machine.run(inputs)
            for info in self._neff.outputs:
                array = arrays[info.name]
                array[...] = widened(f"output '{info.name}'", results[info.name], array.dtype).reshape(array.shape)

    def _load(self) -> None:
        if self._data is None:
            return
        self._neff = neff.read(self._data)
        self._machine = sim.Machine(self._neff.program, self._neff.device, self._neff.weights, self._neff.prologue)
        self._data = None


def load(symbol: str, data: bytes) -> Callable[..., None]:
    """The function of the NEFF `data`; registered as `tvm_neuron.runtime.load` for the C++ module."""
    program = LoadedProgram(symbol, data)
    return lambda *tensors: program(*tensors)
