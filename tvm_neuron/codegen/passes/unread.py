"""drop_unread: what nothing reads, as the part of a matrix above another's last column, is not made."""

from tvm_neuron.schedule.graph import Graph
from tvm_neuron.schedule.roles import gathered


def drop_unread(graph: Graph) -> None:
    """Drops blocks of which neither another block nor anything outside reads what they write.

    But for gathers: these tell of positions that lie outside of what they choose from.
    """
    for block in reversed(graph.blocks):
        if block.output.kind == "temp" and not graph.readers(block.output) and not gathered(block):
            graph.replace(block)
