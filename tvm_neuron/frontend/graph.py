"""An ONNX graph under construction: nodes with names, constants, and what is known of the shapes of its tensors."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

OPSET = 21  # the first whose bitwise and cast operators take all that StableHLO has
IR_VERSION = 10
Shape = tuple[int, ...]


class Graph:
    """`scope` begins the names of the nodes that are added next: where in the model they come from."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, NDArray[Any]] = {}
        self.scope = ""
        self._known: set[str] = set()  # tensors that follow from constants alone
        self._named: dict[str, int] = {}
        self._taken: set[str] = set()  # names of inputs and outputs, which are the model's own
        self._tensors = 0

    def add(self, op: str, *inputs: str, results: int = 1, **attributes: Any) -> Any:
        """The name of the node's result, or a list of several."""
        names = [self._tensor() for _ in range(results)]
        given = {name: value for name, value in attributes.items() if value is not None}
        self.nodes.append(helper.make_node(op, inputs, names, name=self._name(op), **given))
        if "domain" not in given and all(name in self._known for name in inputs if name):
            self._known.update(names)
        return names[0] if results == 1 else names

    def constant(self, value: Any, dtype: Any = None) -> str:
        """A tensor that is known."""
        name = self._tensor()
        self.constants[name] = np.asarray(value, dtype)
        self._known.add(name)
        return name

    def ints(self, values: Sequence[int]) -> str:
        """Sizes or axes, as ONNX takes them."""
        return self.constant(values, np.int64)

    def is_known(self, name: str) -> bool:
        """Whether it follows from constants alone."""
        return name in self._known

    def reserve(self, name: str) -> str:
        """The name, which no tensor is given any more."""
        self._taken.add(name)
        return name

    def body(self) -> "Graph":
        """A graph inside of this one, which may read its tensors."""
        inner = Graph()
        inner._known, inner._named, inner.scope, inner._taken = self._known, self._named, self.scope, self._taken
        inner._tensors = self._tensors + 100_000 * (1 + len(self._named))  # names that this one does not reach
        return inner

    def proto(self, name: str, inputs: Sequence[onnx.ValueInfoProto], outputs: Sequence[onnx.ValueInfoProto]) -> Any:
        """The graph as ONNX has it."""
        tensors = [numpy_helper.from_array(array, key) for key, array in self.constants.items()]
        return helper.make_graph(self.nodes, name, inputs, outputs, tensors)

    def _tensor(self) -> str:
        self._tensors += 1
        while f"t{self._tensors}" in self._taken:
            self._tensors += 1
        return f"t{self._tensors}"

    def _name(self, op: str) -> str:
        base = self.scope or op.lower()
        count = self._named.get(base, 0)
        self._named[base] = count + 1
        return base if not count else f"{base}_{count}"


def tensor_type(name: str, shape: Shape, dtype: Any) -> onnx.ValueInfoProto:
    """The declaration of an input or output."""
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)


def model_of(graph: Graph, inputs: Sequence[onnx.ValueInfoProto], outputs: Sequence[onnx.ValueInfoProto]) -> Any:
    """The graph as a ModelProto."""
    opsets = [helper.make_opsetid("", OPSET)]
    return helper.make_model(graph.proto("main", inputs, outputs), opset_imports=opsets, ir_version=IR_VERSION)
