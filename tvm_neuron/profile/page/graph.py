"""graph: the operators as boxes where they run, with arrows from who makes a tensor to who reads it."""

from collections.abc import Sequence
from typing import Any

from bokeh.models import ColumnDataSource, HoverTool
from bokeh.plotting import figure

from tvm_neuron.isa import DramTile
from tvm_neuron.neff import Placement
from tvm_neuron.profile.run import CoreRun, Run

_NODES = {
    "neuroncore": ("#0072B2", "circle", "operator on the NeuronCore"),
    "cpu": ("#D55E00", "square", "operator on the CPU"),
    "tensor": ("#999999", "triangle", "input or output"),
}


def edges(run: Run) -> tuple[dict[str, tuple[str, str]], list[tuple[str, str]]]:
    """(of each node, what it is and its text), and the arrows between nodes; tensors join programs."""
    nodes: dict[str, tuple[str, str]] = {}
    arrows: dict[tuple[str, str], None] = {}
    for core in run.cores:
        _add(core, nodes, arrows)
    return nodes, [(source, target) for source, target in arrows if source != target]


def _add(core: CoreRun, nodes: dict[str, tuple[str, str]], arrows: dict[tuple[str, str], None]) -> None:
    program = core.recording.neff.program
    for _, one in program.instructions():
        origin = program.origins[one.origin]
        nodes[f"{core.name} {one.origin}"] = ("neuroncore", f"{origin} in {core.name}")
        for _, kind, tile in one.tiles():
            if isinstance(tile, DramTile) and program.tensors[tile.tensor].kind in ("input", "output"):
                tensor = program.tensors[tile.tensor].name
                nodes[tensor] = ("tensor", f"tensor {tensor}")
                ends = (tensor, f"{core.name} {one.origin}")
                arrows[ends if kind.role == "reads" else ends[::-1]] = None
    for source, target in sorted(core.recording.lives.edges):
        arrows[f"{core.name} {source}", f"{core.name} {target}"] = None


def depths(nodes: Sequence[str], arrows: Sequence[tuple[str, str]]) -> dict[str, int]:
    """How many arrows lie before each node at most; what is in a circle of operators stays where it was found."""
    before: dict[str, list[str]] = {node: [] for node in nodes}
    for source, target in arrows:
        before[target].append(source)
    found: dict[str, int] = {}
    for root in nodes:
        pending = [(root, False)]
        visiting: set[str] = set()
        while pending:
            node, is_known = pending.pop()
            if node in found:
                continue
            if is_known:
                found[node] = max((found.get(other, -1) for other in before[node]), default=-1) + 1
                continue
            visiting.add(node)
            pending.append((node, True))
            pending += [(other, False) for other in before[node] if other not in found and other not in visiting]
    return found


def graph(run: Run, placement: Sequence[Placement]) -> Any:
    """The plot: from left to right by depth; operators on the CPU below, with their reasons."""
    nodes, arrows = edges(run)
    depth = depths(list(nodes), arrows)
    row: dict[int, int] = {}
    at: dict[str, tuple[float, float]] = {}
    for node in nodes:
        height = row.get(depth[node], 0)
        row[depth[node]] = height + 1
        at[node] = (depth[node], -height)
    on_cpu = [one for one in placement if one.where == "cpu"]
    lowest = min((y for _, y in at.values()), default=0.0)
    for number, one in enumerate(on_cpu):
        name = f"cpu {number}"
        nodes[name] = ("cpu", f"{one.op} {one.name} on the CPU: {one.reason}")
        at[name] = (number, lowest - 1.5)
    made = figure(
        title="What reads what, and where it runs (hover for names and reasons)", name="graph",
        tools="pan,wheel_zoom,box_zoom,reset,save", active_scroll="wheel_zoom", sizing_mode="stretch_width",
        height=min(520, 160 + 30 * max(row.values(), default=0)),
    )  # fmt: skip
    made.toolbar.logo = None
    made.axis.visible = made.grid.visible = False
    made.segment(
        [at[source][0] for source, _ in arrows], [at[source][1] for source, _ in arrows],
        [at[target][0] for _, target in arrows], [at[target][1] for _, target in arrows], color="#bbbbbb",
    )  # fmt: skip
    for kind, (color, marker, label) in _NODES.items():
        mine = [node for node, (which, _) in nodes.items() if which == kind]
        if mine:
            columns = {
                "x": [at[n][0] for n in mine],
                "y": [at[n][1] for n in mine],
                "what": [nodes[n][1] for n in mine],
            }
            source = ColumnDataSource(columns)
            drawn = made.scatter("x", "y", source=source, size=11, color=color, marker=marker, legend_label=label)
            made.add_tools(HoverTool(tooltips=[("", "@what")], renderers=[drawn]))
    if made.legend:
        made.add_layout(made.legend[0], "right")
    return made
