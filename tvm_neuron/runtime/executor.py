"""Runs a compiled library: named inputs in, named outputs out, checked before anything runs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import tvm
from tvm.runtime.module import BenchmarkResult

from tvm_neuron.errors import InputError
from tvm_neuron.neff import TensorInfo, check_inputs
from tvm_neuron.runtime import shared
from tvm_neuron.runtime.batches import rows_of
from tvm_neuron.runtime.bound import check_same
from tvm_neuron.runtime.bucket import Bucket, for_rows
from tvm_neuron.runtime.contents import Library, bound_in, plan_of, root_module, virtual_machines, weights_of
from tvm_neuron.runtime.converted import as_array, converted
from tvm_neuron.runtime.named import given_inputs, index_of
from tvm_neuron.runtime.spmd import SpmdBucket
from tvm_neuron.runtime.tensors import as_numpy, widened
from tvm_neuron.runtime.timing import time_evaluator
from tvm_neuron.runtime.transfers import Moved, counting
from tvm_neuron.runtime.turns import Turns

Value = Any
"""A TVM tensor, an array, a number or nested lists of numbers."""


class Executor:
    """One library on one device: holds the inputs until `run`, and the outputs after it.

    A library built with `dynamic_batch` takes any number of rows, the same for every input. One with several buckets
    takes the shapes of each; what differs between them is -1 in `inputs` and `outputs`.

    Arrays of numbers are converted to the input's dtype, as TVM's own executors do; where that changes values, an
    InputWarning says so.

    `moved` says what the last run moved between the host and NeuronCores.

    It is for one thread at a time. Raises InputError from `set_input` (unknown name, wrong shape or dtype) and from
    `run` (an input is missing), ServiceError from `run` and `get_output` where threads would get each other's results.
    """

    def __init__(
        self,
        buckets: Sequence[Bucket],
        name: str,
        weights: shared.Source | None = None,
        bound: Mapping[str, str] | None = None,
    ) -> None:
        """`buckets` are there with the smaller first; they share `weights`.

        `bound` are digests of weights that were compiled in: to set them again to what they are changes nothing.
        """
        self.name = name
        self.bound = bound or {}
        self._weights = weights  # programs look for them at their first call
        self._buckets = buckets
        self.inputs = _common([bucket.inputs for bucket in self._buckets])
        self.outputs = _common([bucket.outputs for bucket in self._buckets])
        self._values: dict[str, tvm.runtime.Tensor] = {}
        self._results: list[tvm.runtime.Tensor] = []
        self._turns = Turns()
        self.moved = Moved()

    @property
    def batch(self) -> int | None:
        """The most rows that run at once, if it takes any number of them."""
        batches = [bucket.batch for bucket in self._buckets]
        return max(batch for batch in batches if batch is not None) if all(batches) else None

    def set_input(self, /, key: str | int | None = None, value: Value = None, **values: Value) -> None:
        """Set one input by name or index, and others by keyword."""
        for name, each in given_inputs(key, value, values):
            self._set(name, each)

    def set_inputs(self, values: Mapping[str, Value]) -> None:
        """Set inputs by name."""
        for name, value in values.items():
            self._set(name, value)

    def run(self, /, **values: Value) -> None:
        """Set the inputs given by keyword, and run."""
        self.set_inputs(values)
        given = dict(self._values)
        with self._turns.running(given), counting() as self.moved:
            self._results = self._run(given)

    def __getitem__(self, name: str) -> Callable[..., Any]:
        """A function by the name that it had in TVM's own executors: `executor["run"]()`.

        Raises AttributeError: there is none of that name.
        """
        functions: dict[str, Callable[..., Any]] = {
            "set_input": self.set_input,
            "run": self.run,
            "get_input": self.get_input,
            "get_output": self.get_output,
            "get_input_index": self.get_input_index,
            "get_num_inputs": lambda: len(self.inputs),
            "get_num_outputs": lambda: len(self.outputs),
        }
        if name not in functions:
            raise AttributeError(f"an executor has no function '{name}', only {', '.join(functions)}")
        return functions[name]

    def time_evaluator(
        self, func_name: str, device: Any = None, number: int = 10, repeat: int = 1, min_repeat_ms: float = 0,
        **others: Any,
    ) -> Callable[..., BenchmarkResult]:  # fmt: skip
        """A function that times `run` on this machine, as TVM's modules have it; see `timing.time_evaluator`."""
        del device, others  # of clocks and caches of other devices
        return time_evaluator(self.run, func_name, number, repeat, min_repeat_ms)

    def _run(self, given: Mapping[str, tvm.runtime.Tensor]) -> list[tvm.runtime.Tensor]:
        arrays = {name: as_numpy(value) for name, value in given.items()}
        bucket = self._bucket_of(arrays)
        if bucket.fits(arrays):
            return bucket.run(given)
        return bucket.run_rows(arrays, rows_of(self.inputs, arrays))

    def runs_of(self, arrays: Mapping[str, np.ndarray]) -> tuple[int, int]:
        """Which bucket inputs of these shapes take, counted from the smallest, and how often it runs for them.

        Raises:
            InputError: none takes them.
        """
        bucket = self._bucket_of(arrays)
        runs = 1 if bucket.batch is None else -(-rows_of(self.inputs, arrays) // bucket.batch)
        return self._buckets.index(bucket), runs

    def _bucket_of(self, arrays: Mapping[str, np.ndarray]) -> Bucket:
        exact = next((bucket for bucket in self._buckets if bucket.fits(arrays)), None)
        if exact is not None:
            return exact
        check_inputs(self._shaped(arrays), arrays)
        able = [each for each in self._buckets if all(each.takes(name, array.shape) for name, array in arrays.items())]
        if not able:
            shapes = ", ".join(f"'{name}' {list(array.shape)}" for name, array in arrays.items())
            raise InputError(f"no bucket of the library has all these shapes: {shapes}")
        return for_rows(able, rows_of(self.inputs, arrays))

    def _shaped(self, arrays: Mapping[str, np.ndarray]) -> list[TensorInfo]:
        """The inputs with the shapes that are given, each of which fits a bucket."""
        return [replace(i, shape=arrays[i.name].shape) if i.name in arrays else i for i in self.inputs]

    def get_input(self, key: str | int) -> tvm.runtime.Tensor:
        """The value that was set for an input."""
        name = self.inputs[index_of(key, self.inputs)].name
        if name not in self._values:
            raise InputError(f"input '{name}' was not set")
        return self._values[name]

    def get_output(self, key: str | int) -> tvm.runtime.Tensor:
        """The result of the last run of that name or number."""
        results = self._results
        self._turns.check_outputs()  # of these
        if not results:
            raise InputError("there are no outputs before the first run")
        return results[index_of(key, self.outputs, "output")]

    def get_input_index(self, name: str) -> int:
        """The position of an input, -1 if there is none of that name."""
        names = [info.name for info in self.inputs]
        return names.index(name) if name in names else -1

    def _set(self, key: str | int, value: Value) -> None:
        if value is None:
            raise InputError(f"no value is given for input {key!r}")
        if isinstance(key, str) and key in self.bound:
            check_same(key, value, self.bound[key])
            return
        info = self.inputs[index_of(key, self.inputs)]
        array = converted(info, widened(as_array(info, value)))
        if any(bucket.takes(info.name, array.shape) for bucket in self._buckets):
            info = replace(info, shape=array.shape)
        check_inputs([info], {info.name: array})
        self._values[info.name] = held = tvm.runtime.tensor(array)
        self._turns.has_set(info.name, held)


MakeExecutor = Callable[..., Executor]
"""Called with the device, or nothing for the CPU, whose memory holds inputs and outputs."""


def _common(buckets: Sequence[tuple[TensorInfo, ...]]) -> tuple[TensorInfo, ...]:
    """The tensors that all buckets have; sizes that differ are -1."""
    found = []
    for infos in zip(*buckets, strict=True):
        sizes = zip(*(info.shape for info in infos), strict=True)
        shape = tuple(each[0] if len(set(each)) == 1 else -1 for each in sizes)
        found.append(replace(infos[0], shape=shape))
    return tuple(found)


def executors(library: Library) -> MakeExecutor:
    """`device -> Executor` for a library; for its root module registered as `tvm_neuron.runtime.factory`."""
    plan = plan_of(library)
    modules = virtual_machines(library) if plan is None else root_module(library).imports
    executables = [tvm.runtime.Executable(module) for module in modules]  # keep what they link
    weights, bound = weights_of(library), bound_in(library)

    def create(*devices: tvm.runtime.Device) -> Executor:
        device = devices[0] if devices else tvm.cpu(0)
        linked = [executable.jit() for executable in executables]
        buckets = [SpmdBucket(plan, linked, device)] if plan else [Bucket(module, device) for module in linked]
        return Executor(buckets, "default", weights, bound)

    return create
