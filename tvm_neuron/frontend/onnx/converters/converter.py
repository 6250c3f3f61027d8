"""Converter: what turns one ONNX node into a Relax expression, and the node as it sees it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm
from tvm import relax


@dataclass(frozen=True)
class Node:
    """One ONNX node on its way to Relax.

    `inputs` are Relax expressions, None for an optional operand left out; `attrs` the attributes by name (strings as
    bytes); `opset` the version of the operator set; `outputs` the number of outputs that the node names; `producer`
    what wrote the model.
    """

    bb: relax.BlockBuilder
    inputs: list[Any]
    attrs: dict[str, Any]
    opset: int
    outputs: int = 1
    producer: str = ""

    def emit(self, expr: relax.Expr) -> relax.Expr:
        """The expression with its type deduced, as operand of a further one."""
        return self.bb.normalize(expr)

    def given(self, position: int) -> Any:
        """The operand at `position`, None where it is left out."""
        return self.inputs[position] if position < len(self.inputs) else None

    def constant(self, position: int) -> np.ndarray | None:
        """The value of the operand at `position`; None where it is left out or known at run time only."""
        value = self.given(position)
        return value.value.numpy() if isinstance(value, tvm.ir.GenericConst) else None

    def is_static(self, position: int = 0) -> bool:
        """Whether the shape of an operand is known."""
        shape = getattr(self.inputs[position].ty, "shape", None)
        return isinstance(shape, relax.ShapeExpr) and all(isinstance(dim, tvm.tirx.IntImm) for dim in shape)

    def shape(self, position: int = 0) -> tuple[int, ...]:
        """The static shape of an operand."""
        return tuple(int(dim) for dim in self.inputs[position].ty.shape)

    def dtype(self, position: int = 0) -> str:
        """The dtype of an operand."""
        return str(self.inputs[position].ty.dtype)


Converter = Callable[[Node], relax.Expr | None]
"""The result (a Relax tuple where the node has several), or None for a form that TVM's importer shall take."""
