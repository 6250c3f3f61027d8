"""Functions as trees of text."""

import sys
from collections.abc import Iterator
from pathlib import Path

from tvm_neuron.relay.contrib.relay_viz.interface import DefaultVizParser, Plotter, VizEdge, VizGraph, VizNode

TermVizParser = DefaultVizParser


class TermGraph(VizGraph):
    """The tree of one function, its result at the root; what is used twice is told once and then referred to."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._nodes: dict[str, VizNode] = {}
        self._used: dict[str, list[str]] = {}

    def node(self, viz_node: VizNode) -> None:
        """Adds a node; the last one is the root."""
        self._nodes[viz_node.identity] = viz_node

    def edge(self, viz_edge: VizEdge) -> None:
        """Adds an edge."""
        self._used.setdefault(viz_edge.end, []).append(viz_edge.start)

    def render(self) -> str:
        """The tree."""
        drawn = {each for parts in self._used.values() for each in parts}
        root = next((identity for identity in reversed(self._nodes) if identity not in drawn), "")
        told = self._nodes[root].detail.replace("\n", ", ") if root else ""
        return "\n".join([f"@{self._name}({told})", *self._below(root, "", set())])

    def _below(self, identity: str, indent: str, told: set[str]) -> Iterator[str]:
        parts = self._used.get(identity, [])
        for number, part in enumerate(parts, 1):
            node = self._nodes[part]
            branch, further = ("`--", "   ") if number == len(parts) else ("|--", "|  ")
            again = " (told above)" if part in told and part in self._used else ""
            yield f"{indent}{branch}{node.type_name} {node.detail.replace(chr(10), ', ')}".rstrip() + again
            if part not in told:
                told.add(part)
                yield from self._below(part, indent + further, told)


class TermPlotter(Plotter):
    """Prints the trees, or writes them to a file."""

    def __init__(self) -> None:
        self._name_to_graph: dict[str, TermGraph] = {}

    def create_graph(self, name: str) -> TermGraph:
        """The tree of a function."""
        self._name_to_graph[name] = TermGraph(name)
        return self._name_to_graph[name]

    def render(self, filename: str | None = None) -> None:
        """Prints all trees, or writes them to the file."""
        text = "\n".join(graph.render() for graph in self._name_to_graph.values()) + "\n"
        if filename is None:
            sys.stdout.write(text)
        else:
            Path(filename).write_text(text)
