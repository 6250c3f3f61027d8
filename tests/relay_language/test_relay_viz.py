"""Pictures of modules: every expression is a node, and parsers and plotters of a user's own are asked."""

from pathlib import Path
from typing import Any

import pytest
import tvm

from tvm_neuron import relay
from tvm_neuron.relay.contrib import relay_viz
from tvm_neuron.relay.contrib.relay_viz.interface import VizEdge, VizNode, VizParser
from tvm_neuron.relay.contrib.relay_viz.terminal import TermGraph, TermPlotter, TermVizParser


def _mod() -> tvm.IRModule:
    x, w = relay.var("x", shape=(2, 8)), relay.var("w")
    made = relay.nn.relu(relay.nn.dense(x, w, units=4))
    inner = relay.GlobalVar("inner")
    y = relay.var("y", shape=(2, 4))
    main = relay.Function([x, w], relay.Call(inner, [relay.add(made, made)]))
    return tvm.IRModule({inner: relay.Function([y], relay.exp(y)), relay.GlobalVar("main"): main})


def test_trees_on_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    relay_viz.RelayVisualizer(_mod(), {"w": None}).render()
    assert capsys.readouterr().out == (
        "@main(x, w)\n"
        "|--Var(Input) name_hint: x, shape: ('2', '8'), dtype: float32\n"
        "|--Var(Param) name_hint: w\n"
        "`--Call inner\n"
        "   `--Call add\n"
        "      |--Call nn.relu\n"
        "      |  `--Call nn.dense units: 4, out_dtype:\n"
        "      |     |--Var(Input) name_hint: x, shape: ('2', '8'), dtype: float32\n"
        "      |     `--Var(Param) name_hint: w\n"
        "      `--Call nn.relu (told above)\n"
        "@inner(y)\n"
        "|--Var(Input) name_hint: y, shape: ('2', '4'), dtype: float32\n"
        "`--Call exp\n"
        "   `--Var(Input) name_hint: y, shape: ('2', '4'), dtype: float32\n"
    )


def test_a_parser_and_a_graph_of_ones_own(tmp_path: Path) -> None:
    class Parser(VizParser):
        def get_node_edges(self, node: Any, relay_param: Any, node_to_id: Any) -> Any:
            if isinstance(node, relay.Var):
                return VizNode(node_to_id[node], "Mine", str(node.name_hint)), []
            return TermVizParser().get_node_edges(node, relay_param, node_to_id)

    class Graph(TermGraph):
        def node(self, viz_node: VizNode) -> None:
            super().node(viz_node)
            if viz_node.type_name == "Mine":
                super().node(VizNode(f"{viz_node.identity}'", "Double"))
                super().edge(VizEdge(f"{viz_node.identity}'", viz_node.identity))

    class Plotter(TermPlotter):
        def create_graph(self, name: str) -> TermGraph:
            self._name_to_graph[name] = Graph(name)
            return self._name_to_graph[name]

    relay_viz.RelayVisualizer(_mod(), {}, Plotter(), Parser()).render(str(tmp_path / "tree.txt"))
    text = (tmp_path / "tree.txt").read_text()
    assert "|--Mine x\n|  `--Double" in text


def test_graphs_for_graphviz(tmp_path: Path) -> None:
    plotter = relay_viz.DotPlotter(get_node_attr=lambda node: {"color": "red"} if "relu" in node.type_name else {})
    relay_viz.RelayVisualizer(_mod(), plotter=plotter).render(str(tmp_path / "g"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["g_inner.dot", "g_main.dot"]
    text = (tmp_path / "g_main.dot").read_text()
    assert 'label="Call nn.relu", color="red"' in text
    # 7 of: dense's two, relu's, add's two, the call's, and the function's two parameters and body
    assert text.count(" -> ") == 9
