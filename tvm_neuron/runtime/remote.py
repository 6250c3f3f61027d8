"""An executor in another process: what TVM's RPC server hands out, and what stands for it where it is used.

RPC carries functions, tensors of the server, numbers and texts; so an executor travels as one function, whose first
argument says what to do.
"""

import json
from collections.abc import Callable
from dataclasses import astuple
from typing import Any

import numpy as np
import tvm
import tvm_ffi
from tvm.runtime.module import BenchmarkResult

from tvm_neuron.errors import InputError
from tvm_neuron.neff import TensorInfo
from tvm_neuron.runtime.bound import check_same
from tvm_neuron.runtime.contents import Library
from tvm_neuron.runtime.converted import as_array
from tvm_neuron.runtime.executor import Executor, executors
from tvm_neuron.runtime.named import given_inputs, index_of
from tvm_neuron.runtime.timing import time_evaluator

Served = Callable[..., Any]


def serve_executors() -> None:
    """From now on libraries that this process loads give executors that other processes can use."""
    tvm_ffi.register_global_func("tvm_neuron.runtime.factory", _served_executors, override=True)


def _served_executors(library: Library) -> Callable[..., Served]:
    create = executors(library)
    return lambda *devices: _served(create(*devices))


def _served(executor: Executor) -> Served:
    spaces: dict[str | int, tvm.runtime.Tensor] = {}  # tensors are given by name: RPC lends those of its arguments only

    def space(key: str | int, dtype: str, *shape: int) -> tvm.runtime.Tensor:
        spaces[key] = tvm.runtime.empty(shape, dtype)
        return spaces[key]

    sides = [[astuple(info) for info in side] for side in (executor.inputs, executor.outputs)]
    actions: dict[str, Callable[..., Any]] = {
        "tensors": lambda: json.dumps(sides),
        "bound": lambda: json.dumps(dict(executor.bound)),
        "space": space,
        "set": lambda key: executor.set_input(key, spaces[key]),
        "run": executor.run,
        "output": executor.get_output,
    }
    return lambda action, *args: actions[action](*args)


class RemoteExecutor:
    """The executor behind a function of an RPC server, with what `GraphModule` needs of an `Executor`.

    Values are checked there: what an `Executor` raises comes back as TVM's RPCError. Raises InputError: the function is
    of something else.
    """

    def __init__(self, served: Served) -> None:
        self._served = served
        try:
            sides = json.loads(served("tensors"))
            self._bound: dict[str, str] = json.loads(served("bound"))
        except (RuntimeError, TypeError, ValueError) as error:
            raise InputError(
                "the function is no executor of a RPC server: start the server by python -m "
                "tvm_neuron.runtime.rpc_server, and take lib['default'](device) of a library loaded there"
            ) from error
        self.inputs, self.outputs = (
            tuple(TensorInfo(name, tuple(shape), dtype) for name, shape, dtype in side) for side in sides
        )
        self._values: dict[str, tvm.runtime.Tensor] = {}

    def set_input(self, /, key: str | int | None = None, value: Any = None, **values: Any) -> None:
        """Copies one input by name or index to the server, and others by keyword."""
        for name, each in given_inputs(key, value, values):
            if name in self._bound:
                check_same(str(name), each, self._bound[str(name)])
                continue
            info = self.inputs[index_of(name, self.inputs)]
            array = each.numpy() if isinstance(each, tvm.runtime.Tensor) else as_array(info, each)
            there = self._served("space", name, str(array.dtype), *array.shape)
            there.copyfrom(np.ascontiguousarray(array).reshape(array.shape))
            self._served("set", name)
            self._values[info.name] = there

    def run(self, /, **values: Any) -> None:
        """Sets inputs, and runs there."""
        self.set_input(**values)
        self._served("run")

    def time_evaluator(
        self, func_name: str, device: Any = None, number: int = 10, repeat: int = 1, min_repeat_ms: float = 0,
        **others: Any,
    ) -> Callable[..., BenchmarkResult]:  # fmt: skip
        """A function that times `run`, the way to the server and back included."""
        del device, others  # of clocks and caches of other devices
        return time_evaluator(self.run, func_name, number, repeat, min_repeat_ms)

    def get_input(self, key: str | int) -> tvm.runtime.Tensor:
        """The value that was set for an input, on the server.

        Raises InputError: it was not set.
        """
        name = self.inputs[index_of(key, self.inputs)].name
        if name not in self._values:
            raise InputError(f"input '{name}' was not set")
        return self._values[name]

    def get_output(self, key: str | int) -> tvm.runtime.Tensor:
        """The result of the last run of that name or number, on the server; `.numpy()` copies it."""
        return self._served("output", index_of(key, self.outputs, "output"))

    def get_input_index(self, name: str) -> int:
        """The position of an input, -1 if there is none of that name."""
        return next((index for index, info in enumerate(self.inputs) if info.name == name), -1)
