"""Operators get the names of the modules that they are from: `layer3.0.conv2`, as a user's `named_modules()` has it."""

import ast
import traceback
from collections.abc import Iterable
from typing import Any

import onnx

_SCOPES = "pkg.torch.onnx.name_scopes"  # a list as text: from the model down to the operator itself


def name_by_modules(model: onnx.ModelProto) -> onnx.ModelProto:
    """`model`, its operators renamed: by the module that they are from, and their own name where it has several."""
    graph = model.graph
    weights = {tensor.name for tensor in graph.initializer}
    paths = [_module_path(node, weights) for node in graph.node]
    taken: set[str] = set()
    for node, path in zip(graph.node, paths, strict=True):
        own = _own_name(node)
        whole = [f"{path}.{own}"] if path else [own]
        node.name = _free([path, *whole] if path and node.op_type != "Constant" else whole, taken)
        taken.add(node.name)
    return model


def path_of_failure(error: BaseException) -> str:
    """The module and the name of the operator at which torch's exporter failed; "" if it was at none.

    Its errors have no path; the operator is what its frames call `node`.
    """
    found = ""
    for frame, _ in traceback.walk_tb((error.__cause__ or error).__traceback__):
        node: Any = frame.f_locals.get("node")
        stack = getattr(node, "meta", {}).get("nn_module_stack")
        if stack:
            path, _kind = [*stack.values()][-1]
            found = f"{path}.{node.name}" if path else node.name
    return found


def _module_path(node: onnx.NodeProto, weights: set[str]) -> str:
    """The module whose weight it uses, else the innermost one that it is in; "" is the model itself.

    A weight comes first because the exporter gives a convolution that took a batch norm's factors the latter's path.
    """
    owners = [name.rpartition(".")[0] for name in node.input if name in weights and "." in name]
    if owners:
        return owners[0]
    scopes = next((entry.value for entry in node.metadata_props if entry.key == _SCOPES), None)
    if scopes is not None:
        return str(["", *ast.literal_eval(scopes)][-2])  # operators of a loop's body are told without the model
    *modules, _operator = node.name.strip("/").split("/")  # as the older exporter has it: /layer1/layer1.0/conv1/Conv
    path = ""
    for module in modules:
        path = module if module.startswith(f"{path}.") or not path else f"{path}.{module}"
    return path


def _own_name(node: onnx.NodeProto) -> str:
    return node.name.rpartition("/")[2].removeprefix("node_") or node.op_type


def _free(candidates: Iterable[str], taken: set[str]) -> str:
    """The first of them, or of the last one numbered, that is not taken."""
    name = ""
    for name in candidates:
        if name not in taken:
            return name
    number = 1
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"
