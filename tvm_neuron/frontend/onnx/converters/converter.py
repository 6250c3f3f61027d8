"""Converter: what turns one ONNX node into a Relax expression, and the node as it sees it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm
from tvm import relax

from tvm_neuron.errors import ModelError


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

    def axes(self) -> list[int]:
        """The axes of a reduction, from its second operand or, in older operator sets, the attribute; none for all.

        Raises ModelError: they are known at run time only.
        """
        given = self.constant(1)
        if given is None and self.given(1) is not None:
            raise ModelError("its axes are known at run time only, so its result has no static shape")
        return list(self.attrs.get("axes") or ()) if given is None else [int(axis) for axis in given]

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
