"""multiply_all: products with matrices that are chosen at run time: with all of them, and each row takes its own.

A mixture of experts chooses weights for each token. Where there are no fewer tokens than experts, that would bring
every matrix from DRAM several times, and the PE array would multiply one row by each. All rows times every expert's
matrix are a few large products with constant weights.
"""

from dataclasses import replace
from math import prod

import numpy as np

from tvm_neuron.codegen.passes.copies import replace_load
from tvm_neuron.codegen.passes.gathers import from_start
from tvm_neuron.codegen.passes.moves import can_invert, inverse
from tvm_neuron.schedule.expr import Apply, Expr, Index, Load, Num, axes_of, every_load, replace_axes
from tvm_neuron.schedule.graph import Block, Graph
from tvm_neuron.schedule.roles import product_factors
from tvm_neuron.schedule.tensor import Tensor


def multiply_all(graph: Graph) -> None:
    """Replaces a read of constants at computed positions, and the product that alone reads what it finds."""
    for block in graph.blocks:
        dim = _chosen_dim(block)
        readers = graph.readers(block.output)
        if dim is None or len(readers) != 1 or len(graph.writers(block.output)) != 1 or not can_invert(block):
            continue
        reader = readers[0]
        found = [load for load in product_factors(reader) or () if load.tensor is block.output]
        if len(found) == 1 and block.output.kind == "temp":
            pieces = _pieces(block, reader, found[0], dim)
            if pieces:
                graph.replace(block)
                graph.replace(reader, *pieces)


def _chosen_dim(block: Block) -> int | None:
    """The one dimension of constants in which a block that only moves chooses by positions known at run time."""
    load = block.expr
    if block.combine or not isinstance(load, Load) or load.tensor.value is None:
        return None
    dims = [d for d, index in enumerate(load.indices) if any(True for _ in every_load(index))]
    return dims[0] if len(dims) == 1 else None


def _pieces(block: Block, reader: Block, read: Load, dim: int) -> list[Block]:
    """The products with all matrices, and what takes its own of each; none if fewer are chosen than there are."""
    assert isinstance(block.expr, Load)
    by = inverse(block, read.indices)
    indices = [replace_axes(index, by) for index in block.expr.indices]
    position, extent = indices[dim], block.expr.tensor.shape[dim]
    axes = dict.fromkeys(axes_of(position))
    if any(axis.is_reduction for axis in axes) or prod(axis.extent for axis in axes) < extent:
        return []
    shape, place = tuple(axis.extent for axis in axes), tuple(map(Index, axes))
    chosen = Tensor(f"{reader.output.name}.chosen", shape, "float32")
    choice = Block(block.origin, tuple(axes), chosen, place, from_start(position, extent))
    # Nothing waits for the last one: a position without an expert is told as where matrices are gathered. It is counted
    # from the start already; a negative one stays so.
    numbers = Tensor(f"{reader.output.name}.experts", (extent,), "float32", value=np.arange(extent, dtype=np.float32))
    found = Tensor(f"{reader.output.name}.found", shape, "float32")
    known = Apply("max", (Load(chosen, place), Num(-1.0)))
    lookup = Block(block.origin, tuple(axes), found, place, Load(numbers, (known,)))
    products: list[Block] = []
    result: Expr | None = None
    for number in range(extent):
        matrix = Load(block.expr.tensor, tuple(Num(number) if d == dim else index for d, index in enumerate(indices)))
        output = Tensor(f"{reader.output.name}.of{number}", reader.output.shape, reader.output.dtype)
        products.append(replace(replace_load(reader, read, matrix), output=output))
        mine = Load(output, reader.index)
        is_mine = Apply("is_equal", (Load(chosen, place), Num(number)))
        result = mine if result is None else Apply("select", (is_mine, mine, result))
    assert result is not None
    return [choice, *products, Block(reader.origin, reader.spatial, reader.output, reader.index, result), lookup]
