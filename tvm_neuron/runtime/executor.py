"""Runs a compiled library: named inputs in, named outputs out, checked before anything runs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import tvm
import tvm_ffi
from tvm import relax

from tvm_neuron.errors import InputError
from tvm_neuron.neff import TensorInfo, check_inputs
from tvm_neuron.runtime.batches import batch_of, joined, parts, rows_of
from tvm_neuron.runtime.contents import manifest
from tvm_neuron.runtime.host import BASELINE, check_level
from tvm_neuron.runtime.tensors import as_numpy, as_tensor, widened

Value = Any
"""A TVM tensor, an array, a number or nested lists of numbers."""


class Executor:
    """One library on one device: holds the inputs until `run`, and the outputs after it.

    A library built with `dynamic_batch` takes any number of rows, the same for every input.

    Raises InputError from `set_input` (unknown name, wrong shape or dtype) and from `run` (an input is missing).
    """

    def __init__(self, module: tvm.runtime.Module, name: str, device: tvm.runtime.Device) -> None:
        """`module` is runnable: compiled by `Executable.jit`, or loaded from a file.

        Raises HostError: its CPU parts were compiled for a processor that has more than this machine's.
        """
        described = manifest(module)
        check_level(described["options"].get("host_cpu", BASELINE))
        self.name = name
        self.inputs = _infos(described["inputs"])
        self.outputs = _infos(described["outputs"])
        self._machine = relax.VirtualMachine(module, device)
        self._batch = batch_of(self.inputs) if described["options"].get("dynamic_batch") else None
        self._values: dict[str, tvm.runtime.Tensor] = {}
        self._results: list[tvm.runtime.Tensor] = []

    def set_input(self, key: str | int | None = None, value: Value = None, **values: Value) -> None:
        """Set one input by name or index, and others by keyword."""
        if key is not None:
            if value is None:
                raise InputError(f"no value is given for input {key!r}")
            self._set(self._info(key), value)
        self.set_inputs(values)

    def set_inputs(self, values: Mapping[str, Value]) -> None:
        """Set inputs by name."""
        for name, value in values.items():
            self._set(self._info(name), value)

    def run(self, **values: Value) -> None:
        """Set the inputs given by keyword, and run."""
        self.set_inputs(values)
        arrays = {name: as_numpy(value) for name, value in self._values.items()}
        if self._batch is not None and len(arrays) == len(self.inputs):
            rows = rows_of(self.inputs, arrays)
            if rows != self._batch:
                self._results = self._run_parts(arrays, rows, self._batch)
                return
        check_inputs(self.inputs, arrays)
        self._results = self._call(self._values)

    def _run_parts(self, arrays: Mapping[str, np.ndarray], rows: int, batch: int) -> list[tvm.runtime.Tensor]:
        found, counts = [], []
        for part, real in parts(arrays, rows, batch):
            results = self._call({name: tvm.runtime.tensor(array) for name, array in part.items()})
            found.append([as_numpy(result) for result in results])
            counts.append(real)
        return [tvm.runtime.tensor(array) for array in joined(found, counts)]

    def _call(self, values: Mapping[str, tvm.runtime.Tensor]) -> list[tvm.runtime.Tensor]:
        result = self._machine["main"](*(values[info.name] for info in self.inputs))
        several = not isinstance(result, tvm.runtime.Tensor | tvm_ffi.Shape)
        return [as_tensor(value) for value in (result if several else (result,))]

    def get_input(self, key: str | int) -> tvm.runtime.Tensor:
        """The value that was set for an input."""
        name = self._info(key).name
        if name not in self._values:
            raise InputError(f"input '{name}' was not set")
        return self._values[name]

    def get_output(self, index: int) -> tvm.runtime.Tensor:
        """Output `index` of the last run."""
        if not self._results:
            raise InputError("there are no outputs before the first run")
        if not 0 <= index < len(self._results):
            raise InputError(f"output {index} does not exist: the model has {len(self._results)}")
        return self._results[index]

    def get_input_index(self, name: str) -> int:
        """The position of an input, -1 if there is none of that name."""
        names = [info.name for info in self.inputs]
        return names.index(name) if name in names else -1

    def _info(self, key: str | int) -> TensorInfo:
        index = key if isinstance(key, int) else self.get_input_index(key)
        if not 0 <= index < len(self.inputs):
            takes = ", ".join(f"'{info.name}'" for info in self.inputs)
            raise InputError(f"input {key!r} is not one of the model's; it takes {takes}")
        return self.inputs[index]

    def _set(self, info: TensorInfo, value: Value) -> None:
        is_array = isinstance(value, tvm.runtime.Tensor | np.ndarray | np.generic)
        array = as_numpy(value) if isinstance(value, tvm.runtime.Tensor) else np.asarray(value)
        if not is_array:  # numbers and lists have no dtype of their own
            array = array.astype(info.dtype)
        array = widened(array)
        if self._batch is not None and array.ndim and array.shape[0]:
            info = replace(info, shape=(array.shape[0], *info.shape[1:]))
        check_inputs([info], {info.name: array})
        self._values[info.name] = tvm.runtime.tensor(array)


MakeExecutor = Callable[..., Executor]
"""Called with the device, or nothing for the CPU, whose memory holds inputs and outputs."""


def _infos(rows: Sequence[Mapping[str, Any]]) -> tuple[TensorInfo, ...]:
    return tuple(TensorInfo(row["name"], tuple(row["shape"]), row["dtype"]) for row in rows)


def factory(module: tvm.runtime.Module) -> MakeExecutor:
    """`device -> Executor` for a library's root module; registered as `tvm_neuron.runtime.factory`."""
    return executors(module.imports[0])


def executors(compiled: tvm.runtime.Module) -> MakeExecutor:
    """Makes executors of the module that holds the virtual machine's code; they share it."""
    executable = tvm.runtime.Executable(compiled)  # keeps what it links

    def create(*devices: tvm.runtime.Device) -> Executor:
        return Executor(executable.jit(), "default", devices[0] if devices else tvm.cpu(0))

    return create
