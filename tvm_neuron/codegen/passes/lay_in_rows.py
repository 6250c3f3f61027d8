"""lay_in_rows: a row of output channels that is reduced whole lies in several rows, one a partition.

A classifier makes a row [1, 1000] of an image, of which softmax takes the maximum and the sum. On one partition each
pass over it takes 1000 cycles. In 8 rows of 125 it takes 125: the product is computed row by row and transposed at
once, each partition reduces its own row, and then what all of them have found.
"""

from collections.abc import Mapping
from dataclasses import replace

from tvm_neuron.codegen.passes.pieces import on_box
from tvm_neuron.codegen.passes.row_cost import row_duration_ps
from tvm_neuron.codegen.passes.row_group import RowGroup, chain_of, row_axis, row_groups
from tvm_neuron.hw import Device
from tvm_neuron.schedule.expr import Axis, Expr, Index, Load, Num, replace_axes, rewrite
from tvm_neuron.schedule.graph import Block, Graph
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor


def lay_in_rows(graph: Graph, device: Device) -> dict[Tensor, int]:
    """Rewrites such groups of blocks; of each tensor that it makes, the dimension that is to lie on the partitions."""
    partition_of: dict[Tensor, int] = {}
    for group in list(row_groups(graph)):
        rows = _rows(group, device)
        if rows > 1:
            _InRows(graph, group, rows, partition_of).run()
    return partition_of


def _rows(group: RowGroup, device: Device) -> int:
    """In how many equal rows it is done soonest, the fewest of them; transposed, each is a column of the PE array."""
    fit = [rows for rows in range(1, device.pe_columns + 1) if group.extent % rows == 0]
    return min(fit, key=lambda rows: row_duration_ps(group, rows, device))


class _InRows:
    """The tensors of a group as [rows, columns], its numbers as one for each row, and the blocks that make these."""

    def __init__(self, graph: Graph, group: RowGroup, rows: int, partition_of: dict[Tensor, int]) -> None:
        self.graph, self.group, self.partition_of = graph, group, partition_of
        self.rows, self.columns = rows, group.extent // rows
        self.made: dict[Tensor, Tensor] = {}

    def run(self) -> None:
        chains = [chain_of(self.graph, head) for head in self.group.heads]
        fused = {block.output for chain in chains for block in chain[:-1]}
        for tensor in self.group.tensors:
            if tensor not in fused:
                shape = (self.rows,) if tensor.elems == 1 else (self.rows, self.columns)
                self.made[tensor] = self._tensor(f"{tensor.name}.rows", shape, tensor.dtype)
        for chain in chains:
            self._compute_by_row(chain)
        done = {block for chain in chains for block in chain}
        for block in self.group.blocks:
            if block not in done:
                changed = self._reduced(block) if block.combine else [self._mapped(block)]
                self.graph.replace(block, *changed, *self._stored(block))

    def _compute_by_row(self, chain: list[Block]) -> None:
        """A contraction and what is fused into it for each row by itself, along the partitions; then these turned."""
        last = chain[-1]
        shape = (self.rows, self.columns)
        turned = self._tensor(f"{last.output.name}.columns", shape, last.output.dtype, partition_dim=1)
        parts = [
            {b.output: Tensor(f"{b.output.name}.{row}", (self.columns,), b.output.dtype) for b in chain[:-1]}
            for row in range(self.rows)
        ]
        for block in chain:
            changed = [self._part(block, row, parts[row], turned) for row in range(self.rows)]
            if block is last:
                axes, index = self._axes()
                changed += [Block(block.origin, axes, self.made[block.output], index, Load(turned, index))]
                changed += self._stored(block)
            self.graph.replace(block, *changed)

    def _part(self, block: Block, row: int, parts: Mapping[Tensor, Tensor], turned: Tensor) -> Block:
        """What a block computes for one row, in a tensor of that row's or, at the end of the chain, in its place."""
        along, start = row_axis(block.output, block.index), row * self.columns
        box = {axis: (start, start + self.columns) if axis is along else (0, axis.extent) for axis in block.axes}
        part = on_box(block, box, block.expr)
        column = Index(next(new for new, old in zip(part.axes, block.axes, strict=True) if old is along))

        def leaf(found: Num | Index | Load) -> Expr:
            is_part = isinstance(found, Load) and found.tensor in parts
            return Load(parts[found.tensor], (column,)) if isinstance(found, Load) and is_part else found

        output = parts.get(block.output, turned)
        index = (Num(row), column) if output is turned else (column,)
        return replace(part, output=output, index=index, expr=rewrite(part.expr, leaf))

    def _mapped(self, block: Block) -> Block:
        """Arithmetic on all rows at once, or once in each row on a number."""
        axes, index = self._axes()
        by = self._positions(block, axes)

        def leaf(found: Num | Index | Load) -> Expr:
            if isinstance(found, Load) and found.tensor in self.made:
                return Load(self.made[found.tensor], index[: len(self.made[found.tensor].shape)])
            return by[found.axis] if isinstance(found, Index) else found

        output = self.made[block.output]
        dims = len(output.shape)
        return Block(block.origin, axes[:dims], output, index[:dims], rewrite(block.expr, leaf))

    def _reduced(self, block: Block) -> list[Block]:
        """Each row by itself, the results of all rows to each partition (one transposition), and these reduced."""
        assert isinstance(block.expr, Load)
        name, dtype = block.output.name, block.output.dtype
        own = self._tensor(f"{name}.own", (self.rows,), dtype)
        every = self._tensor(f"{name}.every", (self.rows, self.rows), dtype)
        to, part = Axis("to", self.rows), Axis("part", self.rows)
        brought = Block(block.origin, (to, part), every, (Index(to), Index(part)), Load(own, (Index(part),)))
        first = self._along_rows(block, self.made[block.expr.tensor], own)
        return [first, brought, self._along_rows(block, every, self.made[block.output])]

    def _along_rows(self, block: Block, source: Tensor, output: Tensor) -> Block:
        row, along = Axis("row", self.rows), Axis("column", source.shape[1], is_reduction=True)
        expr = Load(source, (Index(row), Index(along)))
        return replace(block, axes=(row, along), output=output, index=(Index(row),), expr=expr)

    def _stored(self, block: Block) -> list[Block]:
        """The move into an output of the model, if that is what the block makes."""
        if block.output.kind != "output":
            return []
        axes, index = self._axes()
        by = self._positions(block, axes)
        there = tuple(replace_axes(part, by) for part in block.index)
        return [Block(block.origin, axes, block.output, there, Load(self.made[block.output], index))]

    def _positions(self, block: Block, axes: tuple[Axis, Axis]) -> dict[Axis, Expr]:
        """Where in the row the axes of the block are; all others have one value."""
        along = row_axis(block.output, block.index)
        position = Linear(0, {axes[0]: self.columns, axes[1]: 1}).expr()
        return {axis: position if axis is along else Num(0) for axis in block.axes}

    def _axes(self) -> tuple[tuple[Axis, Axis], tuple[Expr, Expr]]:
        row, column = Axis("row", self.rows), Axis("column", self.columns)
        return (row, column), (Index(row), Index(column))

    def _tensor(self, name: str, shape: tuple[int, ...], dtype: str, partition_dim: int = 0) -> Tensor:
        tensor = Tensor(name, shape, dtype)
        self.partition_of[tensor] = partition_dim
        return tensor
