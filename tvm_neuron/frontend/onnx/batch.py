"""Changing the batch size of a model that has it baked into the targets of its Reshape operators."""

import math
from dataclasses import dataclass, field

import onnx

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.origin import Origin

Shape = tuple[int, ...]

_ADVICE = "export the model with a dynamic batch, or keep its batch size"


@dataclass
class Batch:
    """The batch size changes from `old` to `new`; `values` are the names of what depends on the inputs."""

    old: int
    new: int
    values: set[str] = field(default_factory=set)

    def reaches(self, node: onnx.NodeProto) -> bool:
        """Whether the first operand of `node` depends on the batch; its outputs then do as well."""
        if any(name in self.values for name in node.input):
            self.values.update(node.output)
        return bool(node.input) and node.input[0] in self.values


def fix_reshape_target(shape: Shape, target: Shape, batch: Batch, origin: Origin) -> Shape:
    """The reshape target for the new batch size, given the operand's `shape`.

    A target that already fits stays. One that leads with the old batch gets the new one, if the number of
    elements then agrees. Anything else is a ModelError: the batch is folded into another axis.
    """
    elems = math.prod(shape)
    resolved = [shape[axis] if dim == 0 and axis < len(shape) else dim for axis, dim in enumerate(target)]
    leads_with_old = bool(target) and target[0] == batch.old and bool(shape) and shape[0] == batch.new
    if leads_with_old and _fits([batch.new, *resolved[1:]], elems):
        return (batch.new, *target[1:])
    if _fits(resolved, elems):
        return target
    raise ModelError(
        f"operator '{origin.name}' (Reshape) has the fixed target {list(target)}, which can't hold {list(shape)} "
        f"after the batch size changed from {batch.old} to {batch.new}; {_ADVICE}"
    )


def _fits(target: list[int], elems: int) -> bool:
    known = math.prod(dim for dim in target if dim != -1)
    return known == elems if -1 not in target else known > 0 and elems % known == 0
