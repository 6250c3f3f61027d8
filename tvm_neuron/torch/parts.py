"""A graph that can't be imported as a whole: the largest parts that can, and the rest as torch runs it."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend import from_onnx
from tvm_neuron.frontend.torch import exported
from tvm_neuron.torch.program import Program


def in_parts(
    graph: torch.fx.GraphModule, examples: Sequence[Any], target: Any
) -> tuple[torch.fx.GraphModule, list[Program], dict[str, str]]:
    """The graph with programs in it, these, and the names of what is left to torch with the reasons."""
    values = _Values(graph)
    values.run(*examples)
    support = _Support(values.of)
    partitioner = CapabilityBasedPartitioner(graph, support, allows_single_node_partition=True)
    split = partitioner.partition_and_fuse()
    values = _Values(split)
    values.run(*examples)
    programs = []
    for node in list(split.graph.nodes):
        if node.op != "call_module" or not str(node.target).startswith("fused_"):
            continue
        try:
            program = Program(split.get_submodule(node.target).eval(), [values.of[arg] for arg in node.args], target)
        except ModelError as error:
            support.refused[node.name] = str(error)
            continue
        programs.append(program)
        setattr(split, node.target, _Called(program, len(values.of[node]) if _is_many(values.of[node]) else None))
    return split, programs, support.refused


class _Called(torch.nn.Module):
    def __init__(self, program: Program, count: int | None) -> None:
        super().__init__()
        self._program, self._count = program, count

    def forward(self, *args: Any) -> Any:
        found = self._program(*args)
        return found[0] if self._count is None else found


class _Values(torch.fx.Interpreter):
    """Keeps what every node gave."""

    def __init__(self, graph: torch.fx.GraphModule) -> None:
        super().__init__(graph, garbage_collect_values=False)
        self.of: dict[torch.fx.Node, Any] = {}

    def run_node(self, n: torch.fx.Node) -> Any:
        with torch.no_grad():
            self.of[n] = super().run_node(n)
        return self.of[n]


class _Support(OperatorSupportBase):
    """An operator is tried alone, once for what it does to which dtypes and ranks."""

    def __init__(self, values: Mapping[torch.fx.Node, Any]) -> None:
        self._values = values
        self._tried: dict[Any, str] = {}
        self.refused: dict[str, str] = {}

    def is_node_supported(self, submodules: Mapping[str, torch.nn.Module], node: torch.fx.Node) -> bool:
        if node.op not in ("call_function", "call_method"):
            return bool(node.op == "get_attr")
        reason = self._reason(node)
        if reason:
            self.refused[f"{node.name} ({getattr(node.target, '__name__', node.target)})"] = reason
        return not reason

    def _reason(self, node: torch.fx.Node) -> str:
        """Why it can't be imported; "" if it can."""
        sources = list(node.all_input_nodes)
        known = (str(node.target), str(node.args), str(node.kwargs), str([_kind(self._values[arg]) for arg in sources]))
        if known not in self._tried:
            self._tried[known] = _try_alone(node, sources, self._values)
        return self._tried[known]


def _try_alone(node: torch.fx.Node, sources: Sequence[torch.fx.Node], values: Mapping[torch.fx.Node, Any]) -> str:
    if not all(isinstance(values[arg], torch.Tensor) for arg in sources) or not _is_tensors(values[node]):
        return "it works on more than tensors"
    graph = torch.fx.Graph()
    inputs = {arg: graph.placeholder(arg.name) for arg in sources}
    graph.output(graph.node_copy(node, inputs.__getitem__))
    try:
        found = exported(torch.fx.GraphModule(torch.nn.Module(), graph).eval(), tuple(values[arg] for arg in sources))
        from_onnx(found.model)
    except ModelError as error:
        return str(error)
    return ""


def _kind(value: Any) -> Any:
    return (value.dtype, value.ndim) if isinstance(value, torch.Tensor) else type(value)


def _is_many(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _is_tensors(value: Any) -> bool:
    parts = value if _is_many(value) else [value]
    return all(isinstance(part, torch.Tensor) for part in parts)
