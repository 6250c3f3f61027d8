"""Block, Graph: a subgraph as loop nests over tensors, the one form from which everything is scheduled."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from tvm_neuron.program import Origin
from tvm_neuron.schedule.expr import Axis, Expr, Load, every_load, loads
from tvm_neuron.schedule.linear import Linear, NotLinearError, SplitAxisError, linear
from tvm_neuron.schedule.tensor import Tensor


@dataclass(frozen=True, eq=False)
class Block:
    """`output[index] = expr` for all axes, or `output[index] = combine(expr)` over the reduction axes from `init`."""

    origin: Origin
    axes: tuple[Axis, ...]
    output: Tensor
    index: tuple[Expr, ...]
    expr: Expr
    combine: str = ""  # "", "add", "max", "min" or "multiply"
    init: float = 0.0

    @property
    def spatial(self) -> tuple[Axis, ...]:
        """Axes that address the output."""
        return tuple(axis for axis in self.axes if not axis.is_reduction)

    @property
    def reduction(self) -> tuple[Axis, ...]:
        """Axes that are combined."""
        return tuple(axis for axis in self.axes if axis.is_reduction)

    def loads(self) -> list[Load]:
        """Every element it reads."""
        return list(loads(self.expr))

    def sources(self) -> list[Tensor]:
        """Every tensor it reads, for its positions too."""
        return list(dict.fromkeys(load.tensor for load in every_load(self.expr)))

    def with_expr(self, expr: Expr) -> "Block":
        """The same loops around another expression."""
        return replace(self, expr=expr)


class Graph:
    """Blocks in an order in which every tensor is whole before it is read; who writes and reads a tensor is kept."""

    def __init__(self, inputs: list[Tensor], outputs: list[Tensor], blocks: Sequence[Block] = ()) -> None:
        self.inputs = inputs
        self.outputs = outputs
        self.blocks = list(blocks)

    @property
    def blocks(self) -> list[Block]:
        """All blocks in order."""
        return [block for place in self._places for block in place]

    @blocks.setter
    def blocks(self, blocks: Sequence[Block]) -> None:
        self._places: list[list[Block]] = []
        self._place_of: dict[Block, int] = {}
        self._order_in: dict[int, dict[Block, int]] = {}  # of places that were asked for and did not change since
        self._writers: dict[Tensor, dict[Block, None]] = {}
        self._readers: dict[Tensor, dict[Block, None]] = {}
        self._writers_found: dict[Tensor, list[Block]] = {}  # in order, of tensors of which these are still all
        self._readers_found: dict[Tensor, list[Block]] = {}
        for block in blocks:
            self._places.append([])
            self._add(block, len(self._places) - 1, 0)

    def writers(self, tensor: Tensor) -> list[Block]:
        """The blocks that write the tensor, each its part."""
        if tensor not in self._writers_found:
            self._writers_found[tensor] = self._in_order(self._writers.get(tensor, ()))
        return list(self._writers_found[tensor])

    def readers(self, tensor: Tensor) -> list[Block]:
        """The blocks that read the tensor."""
        if tensor not in self._readers_found:
            self._readers_found[tensor] = self._in_order(self._readers.get(tensor, ()))
        return list(self._readers_found[tensor])

    def replace(self, block: Block, *others: Block) -> None:
        """Puts `others` (or nothing) in the place of a block."""
        place = self._place_of.pop(block)
        at = self._places[place].index(block)
        del self._places[place][at]
        self._order_in.pop(place, None)
        self._writers[block.output].pop(block)
        self._writers_found.pop(block.output, None)
        for tensor in block.sources():
            self._readers[tensor].pop(block)
            self._readers_found.pop(tensor, None)
        for offset, other in enumerate(others):
            self._add(other, place, at + offset)

    def tensors(self) -> Iterator[Tensor]:
        """Inputs and all tensors that blocks write, each once."""
        yield from dict.fromkeys([*self.inputs, *(block.output for block in self.blocks)])

    def _add(self, block: Block, place: int, at: int) -> None:
        self._places[place].insert(at, block)
        self._order_in.pop(place, None)
        self._place_of[block] = place
        self._writers.setdefault(block.output, {})[block] = None
        self._writers_found.pop(block.output, None)
        for tensor in block.sources():
            self._readers.setdefault(tensor, {})[block] = None
            self._readers_found.pop(tensor, None)

    def _in_order(self, blocks: Iterable[Block]) -> list[Block]:
        """As the graph has them; thousands may be in one place, pieces of a gather, and are looked for once."""
        found = list(blocks)
        if len(found) < 2:
            return found
        return sorted(found, key=lambda block: (self._place_of[block], self._order(self._place_of[block])[block]))

    def _order(self, place: int) -> dict[Block, int]:
        if place not in self._order_in:
            self._order_in[place] = {block: at for at, block in enumerate(self._places[place])}
        return self._order_in[place]


def linear_indices(indices: tuple[Expr, ...]) -> tuple[Linear, ...] | None:
    """The indices as sums of axes, or None if one of them is none."""
    try:
        return _each_linear(indices)
    except (NotLinearError, SplitAxisError):
        return None


@lru_cache(1 << 15)
def _each_linear(indices: tuple[Expr, ...]) -> tuple[Linear, ...]:
    """Rules and layouts ask for the same ones again and again; what raises is not kept, and with it no tensor."""
    return tuple(map(linear, indices))
