"""nests: hardware loops over every combination of tiles."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import product

from tvm_neuron.allocation.storage import Span
from tvm_neuron.codegen.emit.builder import Builder, Loops
from tvm_neuron.schedule.expr import Axis
from tvm_neuron.schedule.tiling import Segment


def nests(
    builder: Builder, axes: Sequence[Axis], cuts: Sequence[Sequence[Segment]], strides: Sequence[int | None]
) -> Iterator[tuple[dict[Axis, Span], Loops]]:
    """Loops over every combination of segments, yielding the spans inside of them.

    `strides[i]` is how far axis i moves an iteration, None for the tile's own size.
    """
    for combination in product(*cuts):
        with ExitStack() as stack:
            spans: dict[Axis, Span] = {}
            loops: list[tuple[int, int]] = []
            for axis, (start, size, count), stride in zip(axes, combination, strides, strict=True):
                depth = stack.enter_context(builder.loop(count))
                spans[axis] = Span(start, size, depth, size if stride is None else stride, count)
                if depth is not None:
                    loops.append((depth, count))
            yield spans, tuple(loops)
