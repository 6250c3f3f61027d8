"""Part: a kernel over a part of the batch, and find_dependences: which other parts it has to come after."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tvm_neuron.allocation.regions import Box, box, overlaps, source_maps, whole
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.tensor import Tensor


@dataclass(eq=False)
class Part:
    """A part of a kernel: which of the model's, where in the batch it begins, how long it keeps each engine (ps).

    All parts of a kernel share its weights: bytes of each partition, and how long they take to come (ps).
    """

    kernel: Kernel
    number: int
    low: int
    work: Mapping[str, int]
    weights: int = 0
    load_ps: int = 0
    after: list["Part"] = field(default_factory=list)  # the parts that make what it reads, or access what it makes


def find_dependences(parts: Sequence[Part], partition_of: Mapping[Tensor, int]) -> None:
    """Sets `after` of every part; the parts come in an order that is right."""
    read: dict[Tensor, list[tuple[Box, Part]]] = {}
    written: dict[Tensor, list[tuple[Box, Part]]] = {}
    for part in parts:
        kernel, region = part.kernel, whole(part.kernel)
        found: dict[Part, None] = {}
        reads = [(t, here) for t in dict.fromkeys(kernel.sources()) for here in _reads(kernel, t, partition_of[t])]
        out = box(kernel.out_maps, region)
        for tensor, here in reads:
            found |= {maker: None for there, maker in written.get(tensor, ()) if overlaps(there, here)}
        for accesses in (read, written):
            found |= {other: None for there, other in accesses.get(kernel.out, ()) if overlaps(there, out)}
        part.after = list(found)
        for tensor, here in reads:
            read.setdefault(tensor, []).append((here, part))
        written.setdefault(kernel.out, []).append((out, part))


def _reads(kernel: Kernel, tensor: Tensor, partition_dim: int) -> list[Box]:
    """The boxes of a tensor that it reads: all of it where positions are not affine or known at run time only."""
    every = source_maps(kernel, tensor, partition_dim)
    if not all(every) or not every:
        return [((0,) * len(tensor.shape), tensor.shape)]
    return [box(maps, whole(kernel)) for maps in every]
