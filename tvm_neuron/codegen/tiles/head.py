"""Heads: what images need first, from DRAM, in slots which come amid other work, so that no engine waits for them."""

from collections.abc import Sequence, Set

from tvm_neuron.codegen.kernels.row_axes import is_fill
from tvm_neuron.codegen.overlap.work import work_of
from tvm_neuron.codegen.tiles.unroll import is_asked_for
from tvm_neuron.hw import Device
from tvm_neuron.schedule.kernel import Kernel, Reduction
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.uses import writers_of

AHEAD = 3  # tiles that are asked for before their own slot: weights that were asked for earlier come before them


def head_length(kernels: Sequence[Kernel], in_dram: Set[Tensor]) -> int:
    """How many kernels there are up to the last on what comes from DRAM, with what follows on the other engines."""
    brought = {k.out for k in kernels if k.by_dma and not in_dram.isdisjoint(k.sources())} | in_dram
    length = 1 + max((n for n, k in enumerate(kernels) if not brought.isdisjoint(k.sources())), default=-1)
    while length < len(kernels) and isinstance(kernels[length].root, Reduction | None) and not is_fill(kernels[length]):
        length += 1
    return length


def slots_of(tiles: Sequence[Kernel]) -> list[list[Kernel]]:
    """A slot for each tile, before them those for what comes ahead.

    A tile is asked for `AHEAD` slots before its own, and engines make copies of it one slot before, since they would
    stand still for DRAM otherwise, or the PE array for them. Tiles that read more than what came for them so far keep
    their order.
    """
    asked, copies, work = _parts(tiles)
    if not _is_in_step(list(asked), work):
        return [list(tiles)]
    return _slots(list(asked.values()), list(copies.values()), work)


def _slots(
    asked: Sequence[list[Kernel]], copies: Sequence[list[Kernel]], work: Sequence[list[Kernel]]
) -> list[list[Kernel]]:
    slots = [[kernel for part in asked[:AHEAD] for kernel in part], *copies[:1]]
    for number, part in enumerate(work):
        next_copies, coming = copies[number + 1 : number + 2], asked[number + AHEAD :][:1]
        slots.append([kernel for some in (*next_copies, part, *coming) for kernel in some])
    return slots


def spread(slots: Sequence[Sequence[Kernel]], work: Sequence[Kernel], device: Device) -> list[Kernel]:
    """The slots spread over the work, each before a kernel on which the PE array works while POOL has nothing to do."""
    busy = [work_of(kernel, device) for kernel in work]
    alone = [0 if engines["pool"] else engines["pe"] for engines in busy]
    found: list[Kernel] = []
    passed = done = 0
    for kernel, ps in zip(work, alone, strict=True):
        passed += ps
        end = len(slots) * passed // max(sum(alone), 1)
        found += [k for slot in slots[done:end] for k in slot]
        found.append(kernel)
        done = end
    return found + [k for slot in slots[done:] for k in slot]


def _is_in_step(asked: Sequence[Tensor], work: Sequence[Sequence[Kernel]]) -> bool:
    """Whether there is work on each tensor that comes, and none before its slot."""
    number_of = {tensor: number for number, tensor in enumerate(asked)}
    read = ((n, tensor) for n, part in enumerate(work) for kernel in part for tensor in kernel.sources())
    return len(asked) <= len(work) and all(number_of.get(tensor, 0) <= number for number, tensor in read)


def _brought(tiles: Sequence[Kernel]) -> list[Tensor]:
    """What DMA brings, and fills and copies of itself complete; not what it moves of what the tiles make."""
    writers = writers_of(tiles)
    return [
        tensor
        for tensor, found in writers.items()
        if any(kernel.by_dma for kernel in found)
        and all(writers.keys().isdisjoint(kernel.sources()) for kernel in found if kernel.by_dma)
        and all(kernel.by_dma or {tensor}.issuperset(kernel.sources()) for kernel in found)
    ]


def _parts(
    tiles: Sequence[Kernel],
) -> tuple[dict[Tensor, list[Kernel]], dict[Tensor, list[Kernel]], list[list[Kernel]]]:
    """By tensor: what is asked for from DRAM and the copies that engines make of it; and, by tile, the work on it."""
    brought = _brought(tiles)
    asked: dict[Tensor, list[Kernel]] = {tensor: [] for tensor in brought}
    copies: dict[Tensor, list[Kernel]] = {tensor: [] for tensor in brought}
    work: list[list[Kernel]] = []
    for kernel in tiles:
        if kernel.out in asked:
            (asked if is_asked_for(kernel) else copies)[kernel.out].append(kernel)
            continue
        if not work or not asked.keys().isdisjoint(kernel.multiplied()):
            work.append([])
        work[-1].append(kernel)
    return asked, copies, work
