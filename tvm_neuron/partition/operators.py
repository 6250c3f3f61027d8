"""onnx_operators: every ONNX operator that can be imported, and what is known of its placement without a model.

Nothing here is kept by hand: the operators are those of the importer, the Relax operators that each one becomes are
read off the importer's source, and the constraints are the very ones that `plan` checks.
"""

import ast
import inspect
import re
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import tvm
from tvm.relax.frontend.onnx import onnx_frontend

from tvm_neuron.frontend.onnx.converters import CONVERTERS
from tvm_neuron.partition.constraints import CONSTRAINTS, has_known_result_shape, is_lowerable
from tvm_neuron.partition.plan import Where

_FROM_OPERATOR_ALONE = (has_known_result_shape, is_lowerable)
_PLACEHOLDER_CLAUSE = re.compile(r"[,;]? \(?[^,;(]*\{.*", re.DOTALL)


@dataclass(frozen=True)
class OperatorSupport:
    """One ONNX operator. `where` is where it runs if its tensors keep the constraints; `notes` are forms that don't."""

    name: str
    where: str
    becomes: tuple[str, ...]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The row as plain values."""
        return asdict(self)


def general_constraints() -> tuple[str, ...]:
    """What every operator must keep to run on a NeuronCore: one sentence each."""
    return tuple(_PLACEHOLDER_CLAUSE.sub("", constraint.__doc__ or "").rstrip(".") for constraint in CONSTRAINTS)


def onnx_operators() -> tuple[OperatorSupport, ...]:
    """A row for each operator, by name."""
    names = {*onnx_frontend._get_convert_map(), *CONVERTERS, "If", "Constant"}
    return tuple(_support(name) for name in sorted(names))


def _support(name: str) -> OperatorSupport:
    if name == "If":
        return OperatorSupport(name, Where.CPU.value, (), ("its branch is chosen by data",))
    converter = onnx_frontend._get_convert_map().get(name)
    becomes = () if converter is None or name in CONVERTERS else tuple(sorted(_relax_operators(converter)))
    refused = {op: reason for op in becomes if (reason := _refusal(op))}
    where = Where.CPU if becomes and len(refused) == len(becomes) else Where.NEURONCORE
    notes = tuple(f"on the CPU where it becomes {op}, against: {reason}" for op, reason in refused.items())
    return OperatorSupport(name, where.value, becomes, notes)


def _refusal(op: str) -> str:
    """Why the Relax operator can never run on a NeuronCore; empty if it can."""
    call = tvm.relax.Call(tvm.ir.Op.get(f"relax.{op}"), [])
    for constraint in _FROM_OPERATOR_ALONE:
        verdict = constraint(call, lambda _: False)
        if not verdict:
            return str(getattr(verdict, "reason", ""))
    return ""


def _relax_operators(converter: type) -> set[str]:
    """The Relax operators named in a converter class and those it inherits from."""
    named = _operators_by_class()
    found = {op for cls in converter.__mro__ for op in named.get(cls.__name__, ())}
    return {op for op in found if f"relax.{op}" in _all_operators()}


@cache
def _operators_by_class() -> dict[str, set[str]]:
    tree = ast.parse(inspect.getsource(onnx_frontend))
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    return {cls.name: {op for node in ast.walk(cls) if (op := _after_relax_op(node))} for cls in classes}


@cache
def _all_operators() -> frozenset[str]:
    return frozenset(str(name) for name in tvm.ir.Op.list_op_names())


def _after_relax_op(node: ast.AST) -> str:
    """`nn.conv2d` for the expression `relax.op.nn.conv2d`, else empty."""
    text = ast.unparse(node) if isinstance(node, ast.Attribute) else ""
    return text.removeprefix("relax.op.") if text.startswith("relax.op.") else ""
