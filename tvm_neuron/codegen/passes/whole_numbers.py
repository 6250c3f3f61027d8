"""drop_truncations: positions that were found in float32 are whole, and need not be made so.

The rounds of TopK and ArgMax find places among the numbers from 0 on; a cast to integers then cuts off what is behind
the point, and limits them to 32 bits, in a dozen instructions of a few elements each.
"""

from dataclasses import dataclass, field
from math import inf

import numpy as np

from tvm_neuron.codegen.integers import EXACT_TO, TRUTHS, as_int32, bound
from tvm_neuron.schedule.expr import Apply, Expr, Load, Num, rewrite_operations
from tvm_neuron.schedule.graph import Block, Graph
from tvm_neuron.schedule.tensor import Tensor

_WHOLE = frozenset(("add", "subtract", "multiply", "max", "min", "abs"))


def drop_truncations(graph: Graph) -> None:
    """Reads whole numbers that float32 holds as they are where they are cast to integers."""
    bounds = _Bounds(graph)
    for block in graph.blocks:
        changed = rewrite_operations(block.expr, bounds.uncast)
        if changed != block.expr:
            graph.replace(block, block.with_expr(changed))


@dataclass
class _Bounds:
    """How far from 0 the whole numbers of a tensor lie at most; infinity where they may be no whole numbers."""

    graph: Graph
    known: dict[Tensor, float] = field(default_factory=dict)

    def uncast(self, part: Apply) -> Expr:
        """What is cast, if nothing would be cut off; else the operation as it is."""
        inner: Expr = part
        while part.op == "select" and isinstance(inner, Apply):
            inner = inner.args[0]
        if isinstance(inner, Load) and part == as_int32(inner) and self._of(inner) <= EXACT_TO:
            return inner
        return part

    def _of(self, load: Load) -> float:
        tensor = load.tensor
        if tensor.value is not None:
            values = tensor.value.astype(np.float64)
            return float(abs(values).max(initial=0)) if np.array_equal(values, np.floor(values)) else inf
        if tensor not in self.known:
            self.known[tensor] = inf
            self.known[tensor] = max(map(self._written, self.graph.writers(tensor)), default=inf)
        return self.known[tensor]

    def _written(self, block: Block) -> float:
        is_one_of_many = block.combine in ("", "min", "max")
        return bound(block.expr, self._of) if is_one_of_many and _stays_whole(block.expr) else inf


def _stays_whole(expr: Expr) -> bool:
    """Whether it makes whole numbers of whole numbers: of others, too, where these only decide."""
    match expr:
        case Num(value):
            return float(value).is_integer()
        case Apply("select", (_, left, right)):
            return _stays_whole(left) and _stays_whole(right)
        case Apply(op, args):
            return op in TRUTHS or op == "sign" or (op in _WHOLE and all(map(_stays_whole, args)))
    return isinstance(expr, Load)
