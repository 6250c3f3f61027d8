"""`tvm.contrib.relay_viz`: pictures of modules."""

from collections.abc import Mapping
from typing import Any

import tvm

from tvm_neuron.relay.analysis import post_order_visit
from tvm_neuron.relay.contrib.relay_viz.dot import DotPlotter
from tvm_neuron.relay.contrib.relay_viz.interface import Plotter, VizParser
from tvm_neuron.relay.contrib.relay_viz.terminal import TermPlotter, TermVizParser

__all__ = ["DotPlotter", "RelayVisualizer", "TermPlotter", "TermVizParser"]


class RelayVisualizer:
    """Draws every function of a module, `main` first, by default as trees on the terminal."""

    def __init__(
        self, relay_mod: tvm.IRModule, relay_param: Mapping[str, Any] | None = None, plotter: Plotter | None = None,
        parser: VizParser | None = None,
    ) -> None:  # fmt: skip
        self._plotter = plotter or TermPlotter()
        parser = parser or TermVizParser()
        names = sorted((var.name_hint for var in relay_mod.get_global_vars()), key=lambda name: name != "main")
        count = 0
        for name in names:
            nodes: list[Any] = []
            post_order_visit(relay_mod[name], nodes.append)
            ids = {node: str(number) for number, node in enumerate(nodes, count)}
            count += len(nodes)
            graph = self._plotter.create_graph(name)
            for node in ids:
                viz_node, edges = parser.get_node_edges(node, relay_param or {}, ids)
                if viz_node is not None:
                    graph.node(viz_node)
                for edge in edges:
                    graph.edge(edge)

    def render(self, filename: str | None = None) -> None:
        """Draws them, into a file or on the terminal."""
        self._plotter.render(filename)
