"""convert_region: the operators of a block, one after the other, by their converters."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.refused import RefusedError
from tvm_neuron.frontend.xla.scope import Scope

Converter = Callable[[Scope, Any, "Mapping[str, Converter]"], None]
"""Gives the operator's results tensors in the scope."""

_RETURNS = ("stablehlo.return", "func.return", "sdy.return")


def convert_region(scope: Scope, block: Any, converters: Mapping[str, Converter]) -> list[Any]:
    """The values that the block returns.

    Raises:
        ModelError: there is no converter for an operator; what a converter refuses, with the operator's name.
    """
    for op in block.operations:
        operation = op.operation
        if operation.name in _RETURNS:
            return list(operation.operands)
        outer = scope.graph.scope
        scope.graph.scope = _name(operation) or outer
        converter = converters.get(operation.name)
        if converter is None:
            raise ModelError(f"operator '{scope.graph.scope}' ({operation.name}) has no converter to ONNX")
        try:
            converter(scope, operation, converters)
        except RefusedError as error:
            raise ModelError(f"operator '{scope.graph.scope}' ({operation.name}) can't be imported: {error}") from error
        scope.graph.scope = outer
    return []


def _name(operation: Any) -> str:
    """`layer/dot_general`, of loc("jit(f)/layer/dot_general"(...)); "" where nothing is said."""
    found = re.match(r'loc\("([^"]+)"', str(operation.location))
    if not found or "/" not in found.group(1):
        return ""
    _, *places = found.group(1).split("/")
    return "/".join(re.sub(r"^\w+\((.*)\)$", r"\1", place) for place in places)
