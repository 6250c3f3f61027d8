"""`tvm.contrib.graph_executor`: set inputs by name, run, read outputs by number."""

from typing import Any

import numpy as np
import tvm
import tvm_ffi
from tvm.runtime.module import BenchmarkResult

from tvm_neuron.errors import InputError
from tvm_neuron.relay.factory import ExecutorFactory
from tvm_neuron.relay.staged import StagedExecutor
from tvm_neuron.runtime import Executor
from tvm_neuron.runtime.remote import RemoteExecutor
from tvm_neuron.runtime.timing import timed


class GraphModule:
    """Runs a model; made from `lib["default"](device)`, the signatures are those of TVM 0.18."""

    def __init__(self, module: Executor | RemoteExecutor | StagedExecutor | tvm_ffi.Function) -> None:
        if isinstance(module, tvm_ffi.Function):
            module = RemoteExecutor(module)  # of a library on a RPC server
        if not isinstance(module, Executor | RemoteExecutor | StagedExecutor):
            raise InputError(f"GraphModule takes lib['default'](device), got {type(module).__name__}")
        self.module = module

    def set_input(self, /, key: str | int | None = None, value: Any = None, **params: Any) -> None:
        """Set one input by name or index, and others by keyword."""
        self.module.set_input(key, value, **params)

    def run(self, /, **input_dict: Any) -> None:
        """Set the inputs given by keyword, and run."""
        self.module.run(**input_dict)

    def load_params(self, params_bytes: bytes | bytearray) -> None:
        """Set the inputs that `tvm.runtime.save_param_dict` wrote; compiled weights are none of them."""
        self.set_input(**tvm.runtime.load_param_dict(bytes(params_bytes)))

    def get_num_outputs(self) -> int:
        """The number of outputs."""
        return len(self.module.outputs)

    def get_num_inputs(self) -> int:
        """The number of inputs, weights not among them."""
        return len(self.module.inputs)

    def get_input(self, index: str | int, out: tvm.runtime.Tensor | None = None) -> tvm.runtime.Tensor:
        """The value set for an input, copied to `out` if given."""
        return _copied(self.module.get_input(index), out)

    def get_input_index(self, name: str) -> int:
        """The position of an input, -1 if there is none of that name."""
        return self.module.get_input_index(name)

    def get_input_info(self) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
        """Shapes and dtypes of the inputs by name."""
        inputs = self.module.inputs
        return {spec.name: spec.shape for spec in inputs}, {spec.name: spec.dtype for spec in inputs}

    def get_output(self, index: str | int, out: tvm.runtime.Tensor | None = None) -> tvm.runtime.Tensor:
        """The result of the last run of that name or number, copied to `out` if given."""
        return _copied(self.module.get_output(index), out)

    def benchmark(
        self,
        device: tvm.runtime.Device,
        func_name: str = "run",
        repeat: int = 5,
        number: int = 5,
        min_repeat_ms: float | None = None,
        limit_zero_time_iterations: int = 100,
        end_to_end: bool = False,
        cooldown_interval_ms: float = 0,
        repeats_to_cooldown: int = 1,
        **kwargs: Any,
    ) -> BenchmarkResult:
        """Wall time of a run on the hardware model: `repeat` times the mean of `number` runs, after one to warm up.

        `end_to_end` includes setting the inputs given in `kwargs` and copying the outputs. This is the time of the
        model on this machine; the modelled latency of the accelerator is in `tvm_neuron.report`.
        """
        if not end_to_end:
            self.set_input(**kwargs)
        run = (lambda: self._run_end_to_end(kwargs)) if end_to_end else self.run
        return timed(run, number, repeat, min_repeat_ms or 0, cooldown_interval_ms, repeats_to_cooldown)

    def _run_end_to_end(self, inputs: dict[str, Any]) -> list[np.ndarray]:
        self.run(**inputs)
        return [self.get_output(index).numpy() for index in range(self.get_num_outputs())]


def create(graph: str, lib: tvm.runtime.Module | ExecutorFactory, device: tvm.runtime.Device) -> GraphModule:
    """The executor of a library built or loaded; `graph` is not needed any more."""
    del graph
    return GraphModule(lib["default"](device))


def _copied(value: tvm.runtime.Tensor, out: tvm.runtime.Tensor | None) -> tvm.runtime.Tensor:
    if out is None:
        return value
    value.copyto(out)
    return out
