"""How long cores take that begin together: for an exchange of tensors, and for a program while they share their DRAM.

Exchanges go round a ring of the group's cores, as bandwidth wants it: an all_gather of n cores takes n - 1 rounds, in
each of which every core passes on one core's tensor; a reduce_scatter as many with an n-th of it, which the receiver
adds to its own in memory; an all_reduce is the one after the other. In a round, bytes keep busy the sender's DMA
engines, the DRAM of both chips, and every port of the chain of chips between them, each way for itself. The round takes
as long as the busiest of these, after the start of a DMA, and the next begins when it is over.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tvm_neuron.hw import Device, Instance
from tvm_neuron.program import Program
from tvm_neuron.sim import ends_ps
from tvm_neuron.spmd.plan import Exchange, Groups, Join

_PS_PER_NS, _PS_PER_S = 1000, 10**12
_PASSES_TO_ADD = 2  # of a receiver's DRAM, which is read and written

Round = Sequence[tuple[int, int, int]]
"""Sender, receiver and bytes of transfers that begin together."""


@dataclass(frozen=True, slots=True)
class StepTime:
    """An exchange: `bytes` are those that leave a core, at most."""

    name: str
    operation: str
    cores: int  # of a group
    bytes: int
    latency_us: float


def exchange_ps(step: Exchange, device: Device, instance: Instance) -> tuple[int, int]:
    """How long it takes all groups, and the bytes that the busiest core sends."""
    total, sent = 0, Counter[int]()
    for transfers, is_added in _rounds(step):
        total += _round_ps(transfers, is_added, device, instance)
        for sender, _, size in transfers:
            sent[sender] += size
    return total, max(sent.values(), default=0)


def joining(step: Join) -> Exchange:
    """A tensor in parts comes to all cores: the exchange that this is."""
    return Exchange(step.source, "all_gather", step.source, step.target, step.layout.groups, step.size_bytes)


def together_ps(program: Program, device: Device, instance: Instance, cores: int) -> int:
    """Until the last of so many cores is through with a program that all begin at once.

    Raises:
        ProgramError: it deadlocks.
    """
    return max(ends_ps([program] * min(cores, instance.cores_per_chip), device, instance))  # chips are alike


def _rounds(step: Exchange) -> Iterator[tuple[Round, bool]]:
    """The rounds, and whether their receivers add."""
    if step.operation == "collective_permute":
        yield [(a, b, step.size_bytes) for a, b in step.groups if a != b], False
        return
    count = len(step.groups[0])
    part = -(-step.size_bytes // count)
    if step.operation in ("all_reduce", "reduce_scatter"):
        yield from [(_ring(step.groups, part), True)] * (count - 1)
    if step.operation in ("all_reduce", "all_gather"):
        each = part if step.operation == "all_reduce" else step.size_bytes
        yield from [(_ring(step.groups, each), False)] * (count - 1)
    if step.operation == "all_to_all":
        for distance in range(1, count):
            yield _ring(step.groups, part, distance), False


def _ring(groups: Groups, size: int, distance: int = 1) -> Round:
    return [(core, group[(at + distance) % len(group)], size) for group in groups for at, core in enumerate(group)]


def _round_ps(transfers: Round, is_added: bool, device: Device, instance: Instance) -> int:
    if not transfers:
        return 0
    busy_ps = Counter[tuple[str, int, int]]()
    for sender, receiver, size in transfers:
        here, there = instance.chip_of(sender), instance.chip_of(receiver)
        busy_ps["core", sender, 0] += size * _PS_PER_S // device.dram_bytes_per_second
        for chip, passes in ((here, 1), (there, _PASSES_TO_ADD if is_added else 1)):
            busy_ps["DRAM", chip, 0] += passes * size * _PS_PER_S // instance.chip_dram_bytes_per_second
        way = 1 if there > here else -1
        for chip in range(here, there, way):
            busy_ps["port", chip, way] += size * _PS_PER_S // instance.link_bytes_per_second
    return device.dma_start_ns * _PS_PER_NS + max(busy_ps.values())
