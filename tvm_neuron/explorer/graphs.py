"""graph_of: a compiled file as a graph of Model Explorer's: operators by program and module, tensors between them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import prod

from model_explorer.graph_builder import Graph, GraphNode, GraphNodeStyle, IncomingEdge, KeyValue, MetadataItem

from tvm_neuron.explorer.opened import INPUTS, Opened, Place, Step
from tvm_neuron.explorer.operators import Shown, node_of, shown
from tvm_neuron.isa import DramTile, Tile
from tvm_neuron.neff import TensorInfo
from tvm_neuron.profile.lives import Life
from tvm_neuron.program import DramTensor, Program
from tvm_neuron.program.cells import GROUP

_ON_CPU = GraphNodeStyle(backgroundColor="#f6d9c6")


@dataclass
class _Making:
    """A graph under way: nodes by id, and who makes each tensor that passes from step to step."""

    nodes: dict[str, GraphNode] = field(default_factory=dict)
    makers: dict[Place, list[tuple[str, str]]] = field(default_factory=dict)

    def add(self, name: str, label: str, namespace: str, **attributes: str) -> GraphNode:
        node = GraphNode(name, label, namespace)
        node.attrs = [KeyValue(key.replace("_", " "), value) for key, value in attributes.items() if value]
        self.nodes[name] = node
        return node

    def output(self, node: str, name: str, dtype: str, shape: Sequence[int], where: str = "") -> str:
        """The id of an output of a node."""
        outputs = self.nodes[node].outputsMetadata
        attributes = {"tensor_name": name, "tensor_shape": f"{dtype}{list(shape)}", "where": where}
        attrs = [KeyValue(key, value) for key, value in attributes.items() if value]
        same = next((one.id for one in outputs if one.attrs == attrs), None)
        if same is None:
            same = str(len(outputs))
            outputs.append(MetadataItem(same, attrs))
        return same

    def edge(self, target: str, source: str, output: str) -> None:
        edges = self.nodes[target].incomingEdges
        if not any((one.sourceNodeId, one.sourceNodeOutputId) == (source, output) for one in edges):
            edges.append(IncomingEdge(source, output, str(len(edges))))

    def read(self, target: str, place: Place | None) -> None:
        """Edges from all who make parts of a tensor."""
        for source, output in self.makers.get(place, ()) if place else ():
            self.edge(target, source, output)


def graph_of(opened: Opened) -> Graph:
    """Inputs, operators by program and module, CPU operators with reasons, outputs; edges have what is passed."""
    made = _Making()
    for index, info in enumerate(opened.inputs):
        made.add(f"input {info.name}", info.name, "", what="input of the model")
        made.makers[INPUTS, index] = [(f"input {info.name}", _tensor(made, f"input {info.name}", info))]
    for number, step in enumerate(opened.steps):
        if step.cores:
            _add_program(made, number, step)
        else:
            _add_cpu(made, number, step, opened)
    for info, place in zip(opened.outputs, opened.results, strict=True):
        made.add(f"output {info.name}", info.name, "", what="output of the model", shape=f"{info.dtype}{[*info.shape]}")
        made.read(f"output {info.name}", place)
    return Graph(opened.name, list(made.nodes.values()))


def module_path(name: str) -> str:
    """Where an operator lies in its model, as its name tells: `/a/conv/Conv` and `a.conv.Conv` in a/conv."""
    separator = "/" if "/" in name else "."
    return "/".join(part for part in name.split(separator)[:-1] if part)


def _add_cpu(made: _Making, number: int, step: Step, opened: Opened) -> None:
    row = opened.placement.get(step.operator)
    label, reason = (row.op, row.reason) if row else (step.name, "")
    node = made.add(
        str(number), label, module_path(step.operator), operator=step.operator, runs="on the CPU", reason=reason
    )
    node.style = _ON_CPU
    for place in step.reads:
        made.read(node.id, place)
    for index, info in enumerate(step.writes):
        made.makers[number, index] = [(node.id, _tensor(made, node.id, info))]


def _add_program(made: _Making, number: int, step: Step) -> None:
    """Operators of all its cores; tensors in DRAM join them to others, memories of the core to each other."""
    assert step.pipeline is not None
    for one in shown(number, step):
        core = f"/core {one.core}" if len(step.cores) > 1 else ""
        namespace = "/".join(filter(None, (step.name + core, module_path(one.facts.name))))
        made.add(one.node, one.facts.op, namespace, **_attributes(one))
    known: dict[str, list[tuple[str, str]]] = {}
    for info, place in zip(step.pipeline.inputs, step.reads, strict=True):
        known[info.name] = made.makers.get(place, []) if place else []
    for at, core_run in enumerate(step.cores):
        program = core_run.recording.neff.program
        loads = [
            (program.tensors[tensor], "reads", origin) for tensor, origin in sorted(core_run.recording.lives.loads)
        ]
        for tensor, role, origin in [*_moved(program), *loads]:
            node = node_of(number, at, origin)
            if role == "reads" and tensor.kind == "input":
                for source, output in known.get(tensor.name, ()):
                    made.edge(node, source, output)
            elif role == "reads" and tensor.kind == "weight":
                made.nodes[node].attrs.append(KeyValue(f"weights {tensor.name}", f"{tensor.dtype}{[*tensor.shape]}"))
            elif role != "reads" and tensor.kind == "output":
                made_by = (node, made.output(node, tensor.name, tensor.dtype, tensor.shape))
                known.setdefault(tensor.name, []).append(made_by)
        written = _boxes(core_run.recording.lives.lives)
        for ends, read in sorted(core_run.recording.lives.edges.items(), key=lambda item: item[0]):
            maker, reader = (node_of(number, at, origin) for origin in ends)
            if maker != reader:
                made.edge(reader, maker, _passed(made, maker, program, read, written))
    for index, info in enumerate(step.pipeline.outputs):
        made.makers[number, index] = known.get(info.name, [])


def _attributes(one: Shown) -> dict[str, str]:
    facts = one.facts
    return {
        "operator": facts.name,
        "runs": "on the NeuronCore",
        "us": f"{facts.us:.3f}",
        "busy_us": ", ".join(f"{engine} {us:.3f}" for engine, us in one.busy_us.items()),
        "MB_over_the_DRAM": f"{facts.dram_bytes / 1e6:.4g}",
        "PE_array": f"{one.array_share:.1%} of its peak",
        "instructions": f"{one.instructions:,}",
    }


def _moved(program: Program) -> Iterator[tuple[DramTensor, str, int]]:
    """(tensor in DRAM, "reads" or "writes", operator), each once."""
    found: dict[tuple[int, str, int], None] = {}
    for _, one in program.instructions():
        for _, kind, tile in one.tiles():
            if isinstance(tile, DramTile):
                found[tile.tensor, kind.role, one.origin] = None
    yield from ((program.tensors[tensor], role, origin) for tensor, role, origin in found)


_Box = tuple[int, str | int, int, int]
"""An operator, and a memory with the bytes of each partition that it wrote there."""


def _boxes(lives: Sequence[Life]) -> dict[_Box, set[tuple[int, int]]]:
    """In which partitions (first, number of them) operators wrote the same bytes."""
    found: dict[_Box, set[tuple[int, int]]] = {}
    for life in lives:
        found.setdefault(_box(life), set()).add((life.partition, life.partitions))
    return found


def _box(life: Life) -> _Box:
    return life.writer.origin, life.place, life.low, life.high


def _beside(life: Life, written: dict[_Box, set[tuple[int, int]]]) -> set[tuple[int, int]]:
    """Where its operator wrote beside it: lives know groups of 32 partitions, so that the last one counts as all."""
    end = life.partition + life.partitions
    return {
        (first, count)
        for first, count in written[_box(life)]
        if (first + count <= life.partition or end <= first) and first // GROUP in life.groups
    }


def _passed(
    made: _Making, source: str, program: Program, read: Sequence[Life], written: dict[_Box, set[tuple[int, int]]]
) -> str:
    """What one operator reads of another: a tensor that waits in DRAM, or so many elements of partitions."""
    in_dram = next((life.place for life in read if isinstance(life.place, int)), None)
    if in_dram is not None:
        tensor = program.tensors[in_dram]
        where = "in DRAM" if tensor.kind == "scratch" else ""
        return made.output(source, tensor.name, tensor.dtype, tensor.shape, where)
    known = {(*_box(life), life.partition) for life in read}
    ranges, elems = {(life.partition, life.partitions) for life in read}, 0
    for life in read:
        beside = {one for one in _beside(life, written) if (*_box(life), one[0]) not in known}
        ranges |= beside
        elems += _elems(life) // life.partitions * (life.partitions + sum(count for _, count in beside))
    partitions = max(first + count for first, count in ranges) - min(first for first, _ in ranges)
    where = "in " + " and ".join(sorted({str(life.place).upper() for life in read})) + ": partitions, elements of each"
    return made.output(source, "", _tile(read[0]).dtype, (partitions, -(-elems // partitions)), where)


def _tile(life: Life) -> Tile:
    """As which it was written."""
    tiles = (tile for _, tile in life.writer.destinations)
    return next(tile for tile in tiles if not isinstance(tile, DramTile) and tile.space == life.place)


def _elems(life: Life) -> int:
    return prod(_tile(life).shape)


def _tensor(made: _Making, node: str, info: TensorInfo) -> str:
    return made.output(node, info.name, info.dtype, info.shape)
