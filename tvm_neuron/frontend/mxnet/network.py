"""Network: an ONNX graph under construction of which every tensor's shape and dtype are known."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from tvm_neuron.frontend.cause import cause
from tvm_neuron.frontend.graph import OPSET, Graph, Shape
from tvm_neuron.frontend.refused import RefusedError

_OPSETS = [helper.make_opsetid("", OPSET)]
_LAST = np.iinfo(np.int64).max


class Network(Graph):
    """Shapes of results are those that ONNX's own definitions of operators give."""

    def __init__(self) -> None:
        super().__init__()
        self._types: dict[str, onnx.TypeProto] = {}

    def declare(self, name: str, shape: Shape, dtype: Any) -> str:
        """An input."""
        self._types[name] = helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)
        return self.reserve(name)

    def weight(self, name: str, values: NDArray[Any]) -> str:
        """A constant that the model has a name for."""
        self.constants[name] = values
        self._known.add(name)
        return self.declare(name, values.shape, values.dtype)

    def constant(self, value: Any, dtype: Any = None) -> str:
        """A tensor that is known."""
        name = super().constant(value, dtype)
        found = self.constants[name]
        self._types[name] = helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(found.dtype), found.shape)
        return name

    def add(self, op: str, *inputs: str, results: int = 1, **attributes: Any) -> Any:
        """As of Graph.

        Raises:
            RefusedError: the inputs don't fit together.
        """
        made = super().add(op, *inputs, results=results, **attributes)
        types = {name: self._types[name] for name in inputs if name}
        small = {name: self.constants[name] for name in types if name in self.constants}
        known = {name: numpy_helper.from_array(array) for name, array in small.items() if array.dtype == np.int64}
        schema = onnx.defs.get_schema(op, OPSET, "")
        try:
            found = onnx.shape_inference.infer_node_outputs(
                schema, self.nodes[-1], types, known, opset_imports=_OPSETS, ir_version=onnx.IR_VERSION
            )
        except onnx.shape_inference.InferenceError as error:
            shapes = ", ".join(str(list(self.shape(name))) for name in inputs if name)
            raise RefusedError(f"its inputs of shapes {shapes} don't fit together ({cause(error)})") from error
        self._types.update(found)
        return made

    def shape(self, name: str) -> Shape:
        """Its sizes."""
        return tuple(size.dim_value for size in self._types[name].tensor_type.shape.dim)

    def dtype(self, name: str) -> np.dtype[Any]:
        """Its dtype in NumPy."""
        return np.dtype(helper.tensor_dtype_to_np_dtype(self._types[name].tensor_type.elem_type))

    def rank(self, name: str) -> int:
        """How many dimensions it has."""
        return len(self.shape(name))

    def axis(self, axis: int, name: str) -> int:
        """The axis counted from the front.

        Raises:
            RefusedError: the tensor has none such.
        """
        rank = self.rank(name)
        if not -rank <= axis < rank:
            raise RefusedError(f"axis {axis} of a tensor of {rank} dimensions")
        return axis % rank

    def number(self, value: float, like: str) -> str:
        """A constant of another tensor's dtype."""
        return self.constant(value, self.dtype(like))

    def cast(self, name: str, dtype: Any) -> str:
        """With elements of another dtype."""
        kind = np.dtype(dtype)
        return name if self.dtype(name) == kind else str(
            self.add("Cast", name, to=helper.np_dtype_to_tensor_dtype(kind))
        )  # fmt: skip

    def reshaped(self, name: str, sizes: Sequence[int]) -> str:
        """With other sizes of as many elements."""
        return name if self.shape(name) == tuple(sizes) else str(self.add("Reshape", name, self.ints(sizes)))

    def transposed(self, name: str, order: Sequence[int]) -> str:
        """With its dimensions in another order."""
        return name if [*order] == [*range(len(order))] else str(self.add("Transpose", name, perm=[*order]))

    def moved(self, name: str, source: int, target: int) -> str:
        """With one dimension at another place among the rest."""
        order = [axis for axis in range(self.rank(name)) if axis != source % self.rank(name)]
        order.insert(target % self.rank(name), source % self.rank(name))
        return self.transposed(name, order)

    def expanded(self, name: str, sizes: Sequence[int]) -> str:
        """Repeated along dimensions of one element."""
        return name if self.shape(name) == tuple(sizes) else str(self.add("Expand", name, self.ints(sizes)))

    def sliced(self, name: str, axis: int, begin: int | None, end: int | None, step: int = 1) -> str:
        """A part along one axis, as of Python."""
        first = (0 if step > 0 else _LAST) if begin is None else begin
        last = (_LAST if step > 0 else -_LAST) if end is None else end
        return str(self.add("Slice", name, self.ints([first]), self.ints([last]), self.ints([axis]), self.ints([step])))
