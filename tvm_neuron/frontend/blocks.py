"""ended_on_error: a block of a Relax builder that an error of ours leaves begun is ended."""

from collections.abc import Iterator
from contextlib import contextmanager

from tvm import relax

from tvm_neuron.errors import NeuronError


@contextmanager
def ended_on_error(bb: relax.BlockBuilder) -> Iterator[None]:
    """Ends the block that a dataflow scope leaves begun, which TVM else warns of on stderr, beside our message."""
    try:
        yield
    except NeuronError:
        bb._end_block()
        raise
