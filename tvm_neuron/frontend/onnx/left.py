"""left: what one stage of a model leaves to the next, which knows the shapes and values that its run tells."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import onnx
from tvm import relax

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.onnx.narrow import Narrow
from tvm_neuron.frontend.onnx.values import Known, Value, dtype_of, shape_of
from tvm_neuron.frontend.origin import Origin

Named: TypeAlias = tuple[onnx.NodeProto, Origin]


@dataclass
class Left:
    """`nodes` in their order; `asked` are values that the next import needs, `unmade` what none of the nodes made.

    `made` are the dtypes of the stage's outputs by name, `known` those results that its import knows already.
    """

    nodes: list[Named] = field(default_factory=list)
    asked: set[str] = field(default_factory=set)
    unmade: set[str] = field(default_factory=set)
    made: dict[str, str] = field(default_factory=dict)
    known: dict[str, np.ndarray] = field(default_factory=dict)

    def leave(self, node: onnx.NodeProto, origin: Origin, asked: Iterable[str] = ()) -> None:
        """The node is for another stage, which needs the values `asked`."""
        self.nodes.append((node, origin))
        self.asked.update(asked)
        self.unmade.update(name for name in node.output if name)

    def take(self, name: str, value: Value) -> None:
        """A result that is read later, or an output of the model.

        Raises ModelError: it is a sequence or an empty optional.
        """
        if isinstance(value, Known):
            self.known[name] = value.array
        elif isinstance(getattr(value, "ty", None), relax.TensorType):
            self.made[name] = dtype_of(value)
        else:
            raise ModelError(
                f"the model's '{name}' is no tensor, and what is made of it waits for sizes that only a run tells: "
                "sequences and optionals don't last from one stage to the next; use tensors"
            )


def is_settled(value: Value) -> bool:
    """Whether the shape of a value is known."""
    if value is None or isinstance(value, Known):
        return True
    if isinstance(value, list):
        return all(map(is_settled, value))
    if isinstance(value, Narrow):
        return is_settled(value.expr)
    return shape_of(value) is not None
