"""staged: an executor of a model that runs in stages, each compiled for the sizes that those before it gave."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import tvm

from tvm_neuron.errors import InputError
from tvm_neuron.frontend.onnx.stages import Given, Stage, Stages
from tvm_neuron.neff import TensorInfo
from tvm_neuron.profile.report import Report
from tvm_neuron.relay.factory import ExecutorFactory
from tvm_neuron.runtime import Executor, report, report_in_turn
from tvm_neuron.runtime.converted import as_array, converted
from tvm_neuron.runtime.named import given_inputs, index_of


@dataclass(frozen=True)
class Built:
    """A library on this machine, and the multiplications that it asks for."""

    library: ExecutorFactory
    executor: Executor
    multiplications: int

    @property
    def report(self) -> Report:
        """That of the library."""
        return report(self.library)


Compile: TypeAlias = Callable[[tvm.IRModule], Built]


class StagedExecutor:
    """What `GraphModule` needs of an `Executor`, and a report; sizes of outputs that only a run tells are -1 before it.

    What is compiled is kept: for the same sizes it runs again, without a compilation. Raises InputError as an
    `Executor`; `run` raises what a build raises.
    """

    def __init__(self, stages: Stages, compile_stage: Compile) -> None:
        self._stages = stages
        self._compile = compile_stage
        self._first = stages.first()
        self._made: dict[Any, tuple[Stage, Built | None]] = {(): self._built(self._first)}
        self._ran: list[Built] = []
        self.inputs = tuple(TensorInfo(name, given.shape, given.dtype) for name, given in stages.inputs.items())
        self.outputs = tuple(TensorInfo(name, (), "") for name in stages.outputs)
        self._values: dict[str, np.ndarray] = {}
        self._results: dict[str, np.ndarray] = {}

    @property
    def report(self) -> Report:
        """Of the stages of the last run, as of one library.

        Raises InputError: nothing ran.
        """
        if not self._ran:
            raise InputError("there is no report before the first run, which tells the sizes of the stages")
        return report_in_turn([(built.library, built.multiplications) for built in self._ran])

    def set_input(self, /, key: str | int | None = None, value: Any = None, **values: Any) -> None:
        """Set one input by name or index, and others by keyword."""
        for name, each in given_inputs(key, value, values):
            info = self.inputs[index_of(name, self.inputs)]
            array = converted(info, as_array(info, each))
            if array.shape != info.shape:
                raise InputError(f"input '{info.name}' has shape {array.shape}; the model takes {info.shape}")
            self._values[info.name] = array

    def run(self, /, **values: Any) -> None:
        """Set the inputs given by keyword, and run all stages."""
        self.set_input(**values)
        missing = [info.name for info in self.inputs if info.name not in self._values]
        if missing:
            raise InputError(f"inputs were not set: {', '.join(missing)}")
        found = {**self._stages.known, **self._values}
        stage, built = self._made[()]
        ran = []
        while True:
            found |= stage.known
            if built is not None:
                found |= _results(stage, built.executor, found)
                ran.append(built)
            if not stage.left:
                break
            stage, built = self._after(stage, found)
        self._ran = ran
        self._results = {name: found[name] for name in self._stages.outputs}

    def get_input(self, key: str | int) -> tvm.runtime.Tensor:
        """The value that was set for an input."""
        name = self.inputs[index_of(key, self.inputs)].name
        if name not in self._values:
            raise InputError(f"input '{name}' was not set")
        return tvm.runtime.tensor(self._values[name])

    def get_output(self, key: str | int) -> tvm.runtime.Tensor:
        """The result of the last run of that name or number."""
        if not self._results:
            raise InputError("there are no outputs before the first run")
        return tvm.runtime.tensor(self._results[self.outputs[index_of(key, self.outputs, "output")].name])

    def get_input_index(self, name: str) -> int:
        """The position of an input, -1 if there is none of that name."""
        names = [info.name for info in self.inputs]
        return names.index(name) if name in names else -1

    def _after(self, stage: Stage, found: Mapping[str, np.ndarray]) -> tuple[Stage, Built | None]:
        """The stage after one, for what was found: shapes and some of the values tell it from others."""
        read = {name: found[name] for name in sorted(stage.reads) if name in found}
        shapes = tuple((name, array.shape) for name, array in read.items())
        key = (stage.left[0][1].name, shapes, tuple(read[name].tobytes() for name in read if name in stage.asked))
        if key not in self._made:
            given = {name: Given(array.shape, array.dtype.name, array) for name, array in read.items()}
            self._made[key] = self._built(self._stages.after(stage, given))
        return self._made[key]

    def _built(self, stage: Stage) -> tuple[Stage, Built | None]:
        return stage, self._compile(stage.mod) if stage.outputs else None


def _results(stage: Stage, executor: Executor, found: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    for name in stage.inputs:
        executor.set_input(name, found[name])
    executor.run()
    return {name: executor.get_output(name).numpy() for name in stage.outputs}
