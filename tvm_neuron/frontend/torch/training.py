"""Whether a program that was captured in training mode computes anything else than in evaluation."""

from collections.abc import Collection
from typing import Any

_SHARES = ("p", "dropout", "dropout_p")  # the arguments of dropouts, of recurrent layers and of attention


def depends_on_training(program: Any) -> bool:
    """Whether an ExportedProgram drops elements, takes statistics of its batch, or changes what the module keeps."""
    kept = program.graph_signature.inputs_to_buffers
    graphs = [module.graph for module in program.graph_module.modules() if hasattr(module, "graph")]
    return any(_trains(node, kept) for graph in graphs for node in graph.nodes if hasattr(node.target, "_schema"))


def _trains(node: Any, kept: Collection[str]) -> bool:
    arguments = node.target._schema.arguments
    given = {each.name: each.default_value for each in arguments if each.has_default_value()}
    given |= {each.name: value for each, value in zip(arguments, node.args, strict=False)} | node.kwargs
    written = [given.get(each.name) for each in arguments if each.alias_info and each.alias_info.is_write]
    if any(getattr(each, "name", "") in kept for each in written):
        return True
    if given.get("use_input_stats") and given.get("running_mean") is not None:
        return True  # instance norm that keeps statistics
    shares = [given[name] for name in _SHARES if name in given]
    if "train" in given or "training" in given:
        return bool(given.get("train") or given.get("training")) and (not shares or any(shares))
    return bool(given.get("dropout_p"))
