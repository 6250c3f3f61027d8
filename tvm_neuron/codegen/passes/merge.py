"""merged: a graph with arithmetic that has one reader as part of that, as it will be once it is fused."""

from tvm_neuron.codegen.kernels.fuse import MOST_VALUES, computed
from tvm_neuron.codegen.passes.moves import inverse, plain_axes
from tvm_neuron.schedule.expr import Expr, Index, Load, Num, replace_axes, rewrite
from tvm_neuron.schedule.graph import Block, Graph
from tvm_neuron.schedule.roles import gathered
from tvm_neuron.schedule.tensor import Tensor


def merged(graph: Graph) -> tuple[Graph, dict[Tensor, Tensor]]:
    """The graph, and for each tensor that it has no more the one of the same shape that it became part of."""
    found = Graph(graph.inputs, graph.outputs, graph.blocks)
    into: dict[Tensor, Tensor] = {}
    for block in graph.blocks:
        readers = found.readers(block.output)
        writers = found.writers(block.output)
        if len(readers) != 1 or len(writers) != 1 or block.output.kind != "temp":
            continue
        (reader,), (writer,) = readers, writers
        if _is_arithmetic(writer) and _is_arithmetic(reader) and _is_read_in_place(writer, reader):
            joined = _joined(writer, reader)
            if len(computed(joined.expr)) <= MOST_VALUES:
                found.replace(writer)
                found.replace(reader, joined)
                into[writer.output] = reader.output
    return found, into


def _is_arithmetic(block: Block) -> bool:
    return not block.combine and not isinstance(block.expr, Load) and gathered(block) is None


def _is_read_in_place(writer: Block, reader: Block) -> bool:
    """Whether each element is read only for the one in its place."""
    read = [load.indices for load in reader.loads() if load.tensor is writer.output]
    is_plain = plain_axes(writer.index) is not None and plain_axes(reader.index) is not None
    return is_plain and writer.output.shape == reader.output.shape and set(read) == {reader.index}


def _joined(writer: Block, reader: Block) -> Block:
    def leaf(part: Num | Index | Load) -> Expr:
        if not isinstance(part, Load) or part.tensor is not writer.output:
            return part
        return replace_axes(writer.expr, inverse(writer, part.indices))

    return reader.with_expr(rewrite(reader.expr, leaf))
