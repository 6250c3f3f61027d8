"""Scope: the values of one region of StableHLO as tensors of an ONNX graph."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import ml_dtypes
import numpy as np

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.graph import Graph, Shape
from tvm_neuron.frontend.refused import RefusedError
from tvm_neuron.spmd import Cut, Exchange, Join

Types = dict[str, tuple[Shape, Any]]
"""Shapes and dtypes of tensors by their names."""

_DTYPES = {
    "i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "ui8": np.uint8, "ui16": np.uint16, "ui32": np.uint32, "ui64": np.uint64,
    "bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32, "f64": np.float64,
}  # fmt: skip


def shape_of(value: Any) -> Shape:
    """Its sizes.

    Raises:
        ModelError: some are open.
    """
    if not value.type.has_static_shape:
        raise ModelError(f"a tensor of type {value.type} has sizes that are open: lower the function for given shapes")
    return tuple(value.type.shape)


def dtype_of(value: Any) -> np.dtype[Any]:
    """Its dtype in NumPy.

    Raises:
        ModelError: ONNX has none like it.
    """
    name = str(value.type.element_type)
    if name not in _DTYPES:
        raise ModelError(f"a tensor of type {value.type} has elements of which ONNX has no like: {name}")
    return np.dtype(_DTYPES[name])


@dataclass
class Tensor:
    """`name` in the graph; there it may have sizes of 1 (`sizes`) where the value repeats."""

    name: str
    sizes: Shape


@dataclass
class Cores:
    """What is for several devices in a program: `steps` by the tensors that they make, whose `types` are these too.

    `core` is the tensor with each device's number, once the program asks for it.
    """

    count: int = 0
    is_inside: bool = False  # of what one of them computes
    steps: dict[str, Cut | Join | Exchange] = field(default_factory=dict)
    types: Types = field(default_factory=dict)
    core: str = ""

    def enter(self, count: int) -> None:
        """The program of so many devices begins.

        Raises:
            RefusedError: another was for another number.
        """
        if self.count not in (0, count):
            raise RefusedError(f"it is for {count} devices, and another part of the program for {self.count}")
        self.count, self.is_inside = count, True


@dataclass
class Scope:
    """What the values of a region, and of those around it, are in `graph`; `functions` are those of the module.

    `cores` is None in bodies of loops, in which devices can't meet.
    """

    graph: Graph
    functions: dict[str, Any]
    tensors: dict[Any, Tensor] = field(default_factory=dict)
    cores: Cores | None = None

    def loose(self, value: Any) -> str:
        """A tensor that broadcasts to the value."""
        return self.tensors[value].name

    def full(self, value: Any) -> str:
        """The tensor with the value's own sizes."""
        tensor, shape = self.tensors[value], shape_of(value)
        if tensor.sizes != shape:
            name = self.graph.add("Expand", tensor.name, self.graph.ints(shape))
            tensor = self.tensors[value] = Tensor(name, shape)
        return tensor.name

    def set(self, value: Any, name: str, sizes: Shape | None = None) -> None:
        """The value is this tensor, whose sizes are its own where none are given."""
        self.tensors[value] = Tensor(name, shape_of(value) if sizes is None else sizes)

    def inner(self) -> "Scope":
        """For a region that is written out in place."""
        return Scope(self.graph, self.functions, dict(self.tensors), self.cores)

    def known(self, value: Any) -> Any:
        """The array, where the value is a constant of the graph; None otherwise."""
        tensor = self.tensors[value]
        found = self.graph.constants.get(tensor.name)
        return None if found is None else np.broadcast_to(found, shape_of(value))

    def reshaped(self, name: str, sizes: Sequence[int]) -> str:
        """With other sizes of as many elements."""
        return str(self.graph.add("Reshape", name, self.graph.ints(sizes)))

    def transposed(self, name: str, order: Sequence[int]) -> str:
        """With its dimensions in another order."""
        return name if [*order] == [*range(len(order))] else str(self.graph.add("Transpose", name, perm=[*order]))


def elements(shape: Sequence[int]) -> int:
    """How many."""
    return prod(shape)
