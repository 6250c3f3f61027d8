"""fold_constants: what depends on constants alone is computed now, with NumPy."""

from collections.abc import Mapping

from tvm_neuron.program import Origin
from tvm_neuron.schedule.evaluate import evaluate_blocks
from tvm_neuron.schedule.expr import Axis, Expr, Index, Load, Num, rewrite
from tvm_neuron.schedule.graph import Block, Graph
from tvm_neuron.schedule.tensor import Tensor

_HALVES = ("float16", "bfloat16")


def fold_constants(graph: Graph) -> None:
    """Gives a value to every tensor that blocks of constants write, and drops those blocks.

    Of 16 bits is only what leaves an operator, as it is of what runs on the engines.
    """
    inner = _within_operators(graph)
    pending: dict[Tensor, list[Block]] = {}
    for block in graph.blocks:
        pending.setdefault(block.output, []).append(block)
    kept: list[Block] = []
    written_out: dict[Tensor, Tensor] = {}
    for block in graph.blocks:
        if block is not pending[block.output][-1]:
            continue
        writers = [_reading(written_out, writer) for writer in pending[block.output]]
        if all(tensor.value is not None for writer in writers for tensor in writer.sources()):
            value = evaluate_blocks(writers, "float32" if block.output in inner else None)
            if block.output.kind == "output":
                constant = Tensor(f"{block.output.name}.value", value.shape, block.output.dtype, value=value)
                written_out[block.output] = constant
                kept.append(_written_out(block, constant))
            else:
                block.output.value = value
        else:
            kept += writers
    graph.blocks = kept


def _within_operators(graph: Graph) -> set[Tensor]:
    """Tensors of 16 bits that only the operator reads that writes them."""
    origins: dict[Tensor, set[Origin]] = {}
    for block in graph.blocks:
        for tensor in (block.output, *block.sources()):
            if tensor.kind == "temp" and tensor.dtype in _HALVES:
                origins.setdefault(tensor, set()).add(block.origin)
    return {tensor for tensor, found in origins.items() if len(found) == 1}


def _reading(constants: Mapping[Tensor, Tensor], block: Block) -> Block:
    """The block with constants in the place of the outputs that they are written to."""
    if constants.keys().isdisjoint(block.sources()):
        return block

    def leaf(part: Num | Index | Load) -> Expr:
        return Load(constants.get(part.tensor, part.tensor), part.indices) if isinstance(part, Load) else part

    return block.with_expr(rewrite(block.expr, leaf))


def _written_out(block: Block, constant: Tensor) -> Block:
    """An output that is known at compile time is written all the same."""
    axes = tuple(Axis(f"d{d}", extent) for d, extent in enumerate(constant.shape))
    index: tuple[Expr, ...] = tuple(Index(axis) for axis in axes)
    return Block(block.origin, axes, block.output, index, Load(constant, index))
