"""Template: blocks read from a kernel once, to be had again for other operands, under another name."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm_neuron.program import Origin
from tvm_neuron.schedule.expr import Axis, Expr, Index, Load, Num, rewrite
from tvm_neuron.schedule.graph import Block
from tvm_neuron.schedule.tensor import Tensor


@dataclass(frozen=True)
class Template:
    """`operands` and `result` are tensors of `blocks`, tuples of them, or None for what is no tensor."""

    operands: list[Any]
    blocks: list[Block]
    result: Any

    def blocks_for(self, arguments: list[Any], name: str, origin: Origin) -> tuple[list[Block], Any]:
        """New blocks that read `arguments`, and the result; new tensors bear `name` and what follows it here."""
        tensors: dict[Tensor, Tensor] = {}
        for operand, argument in zip(self.operands, arguments, strict=True):
            _pair(operand, argument, tensors)

        def tensor(old: Tensor) -> Tensor:
            if old not in tensors:
                tensors[old] = Tensor(f"{name}{old.name}", old.shape, old.dtype, old.kind, old.value, span=old.span)
            return tensors[old]

        def copy(block: Block) -> Block:
            axes = {axis: Axis(axis.name, axis.extent, axis.is_reduction) for axis in block.axes}

            def leaf(part: Num | Index | Load) -> Expr:
                if isinstance(part, Index):
                    return Index(axes[part.axis])
                return Load(tensor(part.tensor), part.indices) if isinstance(part, Load) else part

            index = tuple(rewrite(expr, leaf) for expr in block.index)
            return Block(
                origin, tuple(axes.values()), tensor(block.output), index, rewrite(block.expr, leaf), block.combine,
                block.init,
            )  # fmt: skip

        return [copy(block) for block in self.blocks], each_tensor(tensor, self.result)


def each_tensor(function: Callable[[Tensor], Any], value: Any) -> Any:
    """`value`, a tensor, tuples of them or None, with the function of each tensor.

    Outside of what calls it, because a function that refers to itself keeps all that it knows, weights too, until
    Python looks for cycles.
    """
    if isinstance(value, tuple):
        return tuple(each_tensor(function, inner) for inner in value)
    return None if value is None else function(value)


def _pair(operand: Any, argument: Any, found: dict[Tensor, Tensor]) -> None:
    if isinstance(operand, tuple):
        for inner, given in zip(operand, argument, strict=True):
            _pair(inner, given, found)
    elif operand is not None:
        found[operand] = argument
