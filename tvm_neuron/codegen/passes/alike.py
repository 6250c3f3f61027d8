"""form_of: what blocks are but for the names of their tensors and axes, so that layers alike are priced once."""

from collections.abc import Hashable

from tvm_neuron.schedule.expr import Apply, Axis, Expr, Index, Load
from tvm_neuron.schedule.graph import Block
from tvm_neuron.schedule.tensor import Tensor


def form_of(block: Block) -> tuple[Hashable, list[Tensor]]:
    """The form, equal for blocks that take the same time, and the run-time tensors in the order of the form.

    Of constants of several numbers it has no values: they are floats, for those of whole numbers decide what an engine
    may copy.
    """
    found = _Form(block)
    out = found.tensor(block.output), tuple(map(found.expr, block.index))
    axes = tuple((axis.extent, axis.is_reduction) for axis in block.axes)
    return (axes, out, found.expr(block.expr), block.combine, block.init), list(found.places)


class _Form:
    def __init__(self, block: Block) -> None:
        self.axes: dict[Axis, int] = {axis: place for place, axis in enumerate(block.axes)}
        self.places: dict[Tensor, int] = {}

    def tensor(self, tensor: Tensor) -> Hashable:
        if tensor.value is None:
            place = self.places.setdefault(tensor, len(self.places))
            return place, tensor.shape, tensor.dtype, tensor.kind, tensor.is_spread
        if tensor.value.size == 1:
            return tensor.shape, tensor.dtype, repr(tensor.value.item())
        return tensor.shape, tensor.dtype, None if "float" in tensor.dtype else tensor

    def expr(self, expr: Expr) -> Hashable:
        match expr:
            case Index(axis):
                # Not all are among the block's own: of a single element, some are left out there.
                return ("axis", self.axes.setdefault(axis, len(self.axes)), axis.extent, axis.is_reduction)
            case Load(tensor, indices):
                return ("load", self.tensor(tensor), *map(self.expr, indices))
            case Apply(op, args):
                return (op, *map(self.expr, args))
        return repr(expr)
