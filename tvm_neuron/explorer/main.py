"""What Model Explorer loads: an adapter for .neff and .so, and a provider of numbers for their operators."""

from typing import Any

from model_explorer import (
    Adapter,
    AdapterMetadata,
    GetConfigEditorsResult,
    ModelExplorerGraphs,
    NodeDataProvider,
    NodeDataProviderFilter,
    NodeDataProviderMetadata,
    NodeDataProviderResult,
)
from model_explorer.config_editor import TextInputConfigEditor

from tvm_neuron.errors import NeuronError
from tvm_neuron.explorer.graphs import graph_of
from tvm_neuron.explorer.node_data import node_data, read_comparison
from tvm_neuron.explorer.opened import open_file

_SUFFIXES = ["neff", "so"]
_COMPARISON = "comparison"


class NeuronAdapter(Adapter):
    """Compiled files as graphs."""

    metadata = AdapterMetadata(
        id="tvm_neuron",
        name="tvm_neuron",
        description="Programs of NeuronCores and CPU operators between them",
        fileExts=_SUFFIXES,
    )

    def convert(self, model_path: str, settings: dict[str, Any]) -> ModelExplorerGraphs:
        """A graph for each bucket of the file.

        Raises:
            NeuronError: see `open_file`.
        """
        return {"graphs": [graph_of(opened) for opened in open_file(model_path)]}


class NeuronNumbers(NodeDataProvider):
    """Time, traffic, engine and use of the PE array of each operator, and errors of a comparison."""

    metadata = NodeDataProviderMetadata(
        id="tvm_neuron_numbers",
        name="tvm_neuron: time, traffic, engine, errors",
        description="What each operator takes on the modelled NeuronCore, and where numbers depart from float32",
        icon="speed",
        filter=NodeDataProviderFilter(modelFileExts=_SUFFIXES),
    )

    def get_config_editors(self, provider_id: str) -> GetConfigEditorsResult:
        """The file of a comparison, if errors are to be shown."""
        editor = TextInputConfigEditor(
            id=_COMPARISON,
            label="Comparison",
            description="File with what `neuron-cc compare --json` printed; without it no errors are shown",
        )
        return GetConfigEditorsResult([editor])

    def run(
        self, provider_id: str, model_path: str, graph_id: str, config_values: dict[str, Any], graph: Any
    ) -> NodeDataProviderResult:
        """The numbers of one graph."""
        try:
            opened = next((one for one in open_file(model_path) if one.name == graph_id), None)
            if opened is None:
                return NodeDataProviderResult(error=f"'{model_path}' has no graph '{graph_id}'")
            errors = read_comparison(str(config_values.get(_COMPARISON) or ""))
            return NodeDataProviderResult(node_data(opened, errors))
        except NeuronError as error:
            return NodeDataProviderResult(error=str(error))
