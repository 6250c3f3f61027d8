"""The kinds of operators by how they read their operands, as passes over whole graphs ask for them."""

from enum import IntEnum

from tvm_neuron.relay.ir.expr import Op
from tvm_neuron.relay.op.declare import OPERATORS


class OpPattern(IntEnum):
    """How an operator reads its operands; an operator's kind bounds what may be fused with it."""

    ELEMWISE = 0
    BROADCAST = 1
    INJECTIVE = 2
    COMM_REDUCE = 3
    OUT_ELEMWISE_FUSABLE = 4
    TUPLE = 7
    OPAQUE = 8


_FAMILIES = {
    "elementwise": OpPattern.ELEMWISE, "reduce": OpPattern.COMM_REDUCE, "shape": OpPattern.INJECTIVE,
    "indexing": OpPattern.INJECTIVE, "create": OpPattern.ELEMWISE, "convolution": OpPattern.OUT_ELEMWISE_FUSABLE,
    "dense": OpPattern.OUT_ELEMWISE_FUSABLE, "pooling": OpPattern.OUT_ELEMWISE_FUSABLE,
    "resizing": OpPattern.INJECTIVE,
}  # fmt: skip

_OPERATORS = {
    "nn.relu": OpPattern.ELEMWISE, "nn.leaky_relu": OpPattern.ELEMWISE, "nn.prelu": OpPattern.BROADCAST,
    "nn.bias_add": OpPattern.BROADCAST, "nn.batch_flatten": OpPattern.INJECTIVE, "nn.pad": OpPattern.INJECTIVE,
    "nn.depth_to_space": OpPattern.INJECTIVE, "nn.space_to_depth": OpPattern.INJECTIVE,
    "nn.softmax": OpPattern.OPAQUE, "annotation.stop_fusion": OpPattern.OPAQUE, "einsum": OpPattern.OPAQUE,
}  # fmt: skip


def pattern_of(op: Op) -> OpPattern:
    """The kind of an operator."""
    name = str(op.name)
    family = OPERATORS[name].family.rpartition(".")[2] if name in OPERATORS else ""
    kind = _OPERATORS.get(name, _FAMILIES.get(family, OpPattern.OPAQUE))
    if kind is OpPattern.ELEMWISE and name in OPERATORS and len(OPERATORS[name].operands) > 1:
        return OpPattern.BROADCAST
    return kind
