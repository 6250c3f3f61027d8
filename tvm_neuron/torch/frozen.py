"""A graph of Dynamo whose weights are attributes again, by the names that the model has for them."""

import re
from collections.abc import Sequence
from typing import Any

import torch

_STATIC = "_dynamo_static_input_type"
_KEY = re.compile(r"\['?([^\[\]']+)'?\]|\.([A-Za-z_]\w*)")
_CONTAINERS = {"_modules", "_parameters", "_buffers"}


class Frozen:
    """Which inputs of a graph are weights."""

    def __init__(self, graph: torch.fx.GraphModule) -> None:
        self._graph = graph
        inputs = [node for node in graph.graph.nodes if node.op == "placeholder"]
        self._paths = [_path(node) if _STATIC in node.meta.get("tensor_dict", {}) else None for node in inputs]

    def split(self, args: Sequence[Any]) -> tuple[list[torch.Tensor], list[Any]]:
        """The weights among the arguments, and the others."""
        pairs = list(zip(self._paths, args, strict=True))
        return [arg for path, arg in pairs if path is not None], [arg for path, arg in pairs if path is None]

    def with_weights(self, weights: Sequence[torch.Tensor]) -> torch.fx.GraphModule:
        """The graph with these weights inside, as a module of what is left of its inputs."""
        root = torch.nn.Module()
        graph = torch.fx.Graph()
        values: dict[torch.fx.Node, torch.fx.Node] = {}
        graph.graph_copy(self._graph.graph, values)
        outputs = next(node for node in self._graph.graph.nodes if node.op == "output").args[0]
        graph.output(torch.fx.map_arg(outputs, values.__getitem__))
        given = iter(weights)
        inputs = [node for node in graph.nodes if node.op == "placeholder"]
        for name, module in self._graph.named_children():
            root.add_module(name, module)
        for name, tensor in (*self._graph.named_parameters(recurse=False), *self._graph.named_buffers(recurse=False)):
            root.register_buffer(name, tensor.detach())
        for node, path in zip(inputs, self._paths, strict=True):
            if path is None:
                continue
            _put(root, path, next(given).detach())
            with graph.inserting_before(node):
                node.replace_all_uses_with(graph.get_attr(path))
            graph.erase_node(node)
        return torch.fx.GraphModule(root, graph).eval()


def _path(node: torch.fx.Node) -> str:
    """`layers.0.weight`, from the source that Dynamo names: L['self']._modules['layers']._modules['0']..."""
    source = getattr(node.meta.get("grapharg"), "source", None)
    name = getattr(source, "name", "")
    keys = [one or other for one, other in _KEY.findall(name() if callable(name) else name)]
    path = ".".join(key for key in keys[1:] if key.isdigit() or (key.isidentifier() and key not in _CONTAINERS))
    return path or str(node.target)


def _put(root: torch.nn.Module, path: str, tensor: torch.Tensor) -> None:
    *modules, last = path.split(".")
    for name in modules:
        if not hasattr(root, name):
            root.add_module(name, torch.nn.Module())
        root = getattr(root, name)
    root.register_buffer(last, tensor)
