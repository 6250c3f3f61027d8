"""drop_unread: what nothing reads, as the part of a matrix above another's last column, is not made."""

from tvm_neuron.schedule.graph import Graph


def drop_unread(graph: Graph) -> None:
    """Drops blocks of which neither another block nor anything outside reads what they write."""
    for block in reversed(graph.blocks):
        if block.output.kind == "temp" and not graph.readers(block.output):
            graph.replace(block)
