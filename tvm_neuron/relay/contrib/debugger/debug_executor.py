"""`tvm.contrib.debugger.debug_executor`: a graph executor that tells the modelled time of each operator."""

import io
from collections.abc import Sequence
from typing import Any

import tvm

from tvm_neuron.errors import InputError
from tvm_neuron.profile import Report
from tvm_neuron.relay.factory import ExecutorFactory
from tvm_neuron.relay.graph_executor import GraphModule
from tvm_neuron.runtime import report


class Profile(str):
    """A table as text, which is also there as JSON."""

    report: Report

    def table(self, *choices: Any, **others: Any) -> str:
        """The text; there is one form of it."""
        del choices, others
        return str(self)

    def json(self) -> str:
        """The report of the library."""
        return self.report.to_json()


class GraphModuleDebug(GraphModule):
    """A graph executor that also has the report of its library."""

    def __init__(
        self, library: tvm.runtime.Module | ExecutorFactory, device: Any, graph: str = "", dump_root: Any = None
    ) -> None:
        """`library` is one built or loaded, or what `library["debug_create"]("default", device)` gave."""
        del graph, dump_root  # nothing is dumped
        super().__init__(library["default"](device[0] if isinstance(device, list) else device))
        self.report = report(library)

    def profile(self, collectors: Any = None, **input_dict: Any) -> Profile:
        """Runs on these inputs; the modelled time by operator and engine, and what ran on the CPU, as text."""
        from rich.console import Console

        from tvm_neuron.profile.tables import render

        del collectors
        self.run(**input_dict)
        text = io.StringIO()
        Console(file=text, width=120).print(render(self.report, len(self.report.layers)))
        found = Profile(text.getvalue())
        found.report = self.report
        return found

    def run_individual(
        self, number: int = 1, repeat: int = 1, min_repeat_ms: float = 0, *others: Any
    ) -> list[Sequence[float]]:
        """The modelled milliseconds of each operator on the NeuronCore, the same `repeat` times; nothing is run."""
        del number, min_repeat_ms, others
        return [[layer.latency_us / 1000] * repeat for layer in self.report.layers]

    def debug_get_output(self, node: str | int, out: Any = None) -> tvm.runtime.Tensor:
        """An output of the model, by its number.

        Raises InputError: `node` is within the model: operators keep their results on the core.
        """
        if not isinstance(node, int) or not 0 <= node < self.get_num_outputs():
            raise InputError(
                f"debug_get_output: {node!r} is none of the {self.get_num_outputs()} outputs; what operators give each "
                "other stays on the NeuronCore: make it an output of the model to see it"
            )
        return self.get_output(node, out)


def create(
    graph: str, lib: tvm.runtime.Module | ExecutorFactory, device: Any, dump_root: Any = None
) -> GraphModuleDebug:
    """The executor of a library built or loaded; `graph` is not needed, and nothing is dumped."""
    return GraphModuleDebug(lib, device, graph, dump_root)
