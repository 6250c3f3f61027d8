"""Functions as graphs in the language of Graphviz."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from tvm_neuron.relay.contrib.relay_viz.interface import Plotter, VizEdge, VizGraph, VizNode

Attributes = Mapping[str, str]


class DotGraph(VizGraph):
    """The graph of one function."""

    def __init__(self, name: str, node_attributes: Callable[[VizNode], Attributes]) -> None:
        self._lines = [f"digraph {json.dumps(name)} {{"]
        self._attributes = node_attributes

    def node(self, viz_node: VizNode) -> None:
        """Adds a box."""
        label = f"{viz_node.type_name}\n{viz_node.detail}".rstrip()
        attributes = {"shape": "box", "label": label} | dict(self._attributes(viz_node))
        written = ", ".join(f"{key}={json.dumps(value)}" for key, value in attributes.items())
        self._lines.append(f"  {json.dumps(viz_node.identity)} [{written}];")

    def edge(self, viz_edge: VizEdge) -> None:
        """Adds an arrow."""
        self._lines.append(f"  {json.dumps(viz_edge.start)} -> {json.dumps(viz_edge.end)};")

    def text(self) -> str:
        """The graph, for the program `dot`."""
        return "\n".join([*self._lines, "}", ""])


class DotPlotter(Plotter):
    """Writes a file `FILENAME_FUNCTION.dot` a function; `get_node_attr` gives boxes colours and shapes."""

    def __init__(self, *, get_node_attr: Callable[[VizNode], Attributes] | None = None) -> None:
        self._attributes = get_node_attr or (lambda _node: {})
        self._graphs: dict[str, DotGraph] = {}

    def create_graph(self, name: str) -> DotGraph:
        """The graph of a function."""
        self._graphs[name] = DotGraph(name, self._attributes)
        return self._graphs[name]

    def render(self, filename: str | None = None) -> None:
        """Writes the files; without a name they begin with `graph`."""
        for name, graph in self._graphs.items():
            Path(f"{filename or 'graph'}_{name}.dot").write_text(graph.text())
