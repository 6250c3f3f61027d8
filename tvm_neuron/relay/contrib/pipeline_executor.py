"""`tvm.contrib.pipeline_executor`: stages that work on consecutive inputs at the same time, each in a thread."""

import json
import os
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import tvm

from tvm_neuron.errors import InputError, NeffError
from tvm_neuron.neff import write_aside
from tvm_neuron.relay.graph_executor import GraphModule

_PIPELINE = -1
Results = list[tvm.runtime.Tensor]


@dataclass(frozen=True)
class Connection:
    """From an output of stage `source` (or an input of the pipeline, -1) to an input of `sink` (or an output, -1)."""

    source: int
    source_name: str
    sink: int
    sink_name: str


class PipelineExecutorFactoryModule:
    """The stages' libraries and how they are connected; `export_library` writes them into a folder."""

    def __init__(self, libraries: Sequence[Any], connections: Sequence[Connection]) -> None:
        self.libraries = list(libraries)
        self.connections = list(connections)

    def export_library(self, directory_path: str | os.PathLike[str]) -> str:
        """Writes a library a stage and a file that names them, whose path is given.

        Raises NeffError: a file can't be written.
        """
        names = [f"lib{number}.so" for number in range(len(self.libraries))]
        for name, library in zip(names, self.libraries, strict=True):
            library.export_library(Path(directory_path, name))
        config = Path(directory_path, "config")
        said = {"libraries": names, "connections": [asdict(each) for each in self.connections]}
        write_aside(config, [json.dumps(said, indent=2).encode()])
        return str(config)


class PipelineModule:
    """Runs a pipeline: `run` begins one, and comes back at once; `get_output` gives the results in the same order."""

    def __init__(self, module: PipelineExecutorFactoryModule) -> None:
        self._modules = [GraphModule(library["default"](tvm.cpu())) for library in module.libraries]
        self._connections = module.connections
        self._workers = [ThreadPoolExecutor(1) for _ in self._modules]  # each keeps the order of the runs
        self._inputs: dict[str, Any] = {}
        self._under_way: deque[list[Future[Results]]] = deque()

    @staticmethod
    def load_library(config_file_name: str | os.PathLike[str]) -> "PipelineModule":
        """The pipeline that `export_library` wrote.

        Raises NeffError: the file can't be read or is none of these.
        """
        path = Path(config_file_name)
        try:
            said = json.loads(path.read_bytes())
            libraries = [tvm.runtime.load_module(str(path.parent / Path(name).name)) for name in said["libraries"]]
            connections = [Connection(**each) for each in said["connections"]]
        except OSError as error:
            raise NeffError(f"'{path}' can't be read: {error.strerror}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise NeffError(f"'{path}' is no pipeline that export_library() wrote") from error
        return PipelineModule(PipelineExecutorFactoryModule(libraries, connections))

    def get_input_pipeline_map(self, name: str) -> list[str]:
        """Of an input of the pipeline: the number of the stage that takes it, and its name there.

        Raises InputError: there is no such input.
        """
        for each in self._connections:
            if each.source == _PIPELINE and each.source_name == name:
                return [str(each.sink), each.sink_name]
        raise InputError(f"the pipeline has no input '{name}', only {', '.join(self._input_names())}")

    def set_input(self, key: str, value: Any) -> None:
        """Sets an input for the runs that begin after this.

        Raises InputError: there is no such input.
        """
        self.get_input_pipeline_map(key)
        self._inputs[key] = value

    def get_input(self, key: str) -> Any:
        """The value that was set.

        Raises InputError: none was.
        """
        if key not in self._inputs:
            raise InputError(f"input '{key}' of the pipeline has not been set")
        return self._inputs[key]

    def run(self) -> None:
        """Begins a run with the inputs that are set.

        Raises InputError: one is missing.
        """
        missing = [name for name in self._input_names() if name not in self._inputs]
        if missing:
            raise InputError(f"the pipeline needs the inputs {', '.join(missing)}")
        inputs, done = dict(self._inputs), list[Future[Results]]()
        for number, worker in enumerate(self._workers):
            done.append(worker.submit(self._run_stage, number, inputs, tuple(done)))
        self._under_way.append(done)

    def _run_stage(self, number: int, inputs: dict[str, Any], done: tuple["Future[Results]", ...]) -> Results:
        module = self._modules[number]
        for each in self._connections:
            if each.sink == number:
                is_own = each.source == _PIPELINE
                value = inputs[each.source_name] if is_own else done[each.source].result()[int(each.source_name)]
                module.set_input(each.sink_name, value)
        module.run()
        found = (module.get_output(index) for index in range(module.get_num_outputs()))
        return [tvm.runtime.tensor(value.numpy().copy()) for value in found]  # the next run uses the memory again

    def get_output(self, synchronize: bool = True, sleep_interval: float = 0.001) -> Results:
        """The outputs of the earliest run whose were not yet taken; nothing if it is not done and not to be waited for.

        Raises InputError: no run is under way; and what the run raised.
        """
        del sleep_interval  # nothing sleeps
        if not self._under_way:
            raise InputError("get_output: no run of the pipeline is under way; call run() first")
        done = self._under_way[0]
        if not synchronize and not all(each.done() for each in done):
            return []
        self._under_way.popleft()
        outputs = sorted((each for each in self._connections if each.sink == _PIPELINE), key=lambda c: int(c.sink_name))
        return [done[each.source].result()[int(each.source_name)] for each in outputs]

    @property
    def num_executing_pipeline(self) -> int:
        """How many runs' outputs were not yet taken."""
        return len(self._under_way)

    @property
    def num_outputs(self) -> int:
        """The number of outputs."""
        return sum(each.sink == _PIPELINE for each in self._connections)

    @property
    def num_inputs(self) -> int:
        """The number of inputs."""
        return len(self._input_names())

    def _input_names(self) -> list[str]:
        return list(dict.fromkeys(each.source_name for each in self._connections if each.source == _PIPELINE))
