"""finish_early: what only outputs need follows what it reads at once, where the PE array waits for weights later.

A detector's scores of one level then leave memory before the next level's layers run, and are stored meanwhile.
"""

from collections.abc import Sequence

from tvm_neuron.codegen.overlap.part import Part, find_dependences
from tvm_neuron.codegen.overlap.work import ENGINES, load_ps, work_of
from tvm_neuron.hw import Device
from tvm_neuron.schedule.kernel import Contraction, Kernel
from tvm_neuron.schedule.tensor import Tensor


def finish_early(kernels: Sequence[Kernel], partition_of: dict[Tensor, int], device: Device) -> list[Kernel]:
    """The kernels; those behind the last contraction come behind the last one before it that they depend on.

    That is so where later contractions wait for their weights for as long as these kernels take one after the other,
    since the array waits for them. What writes an output comes right behind all that it depends on: it frees memory.
    """
    parts = [Part(kernel, number, 0, dict.fromkeys(ENGINES, 0)) for number, kernel in enumerate(kernels)]
    find_dependences(parts, partition_of)
    last = max((n for n, kernel in enumerate(kernels) if isinstance(kernel.root, Contraction)), default=len(kernels))
    early = _early(parts, last, device)
    places: list[tuple[int, ...]] = [(number,) for number in range(len(kernels))]
    for part in parts[last + 1 :]:
        after = max((places[other.number] for other in part.after), default=(last,))
        before = after if part.kernel.out.kind == "output" else after[:1]
        places[part.number] = (*(before if part.number in early else (last,)), part.number)
    return [kernels[n] for n in sorted(range(len(kernels)), key=lambda n: places[n])]


def _early(parts: Sequence[Part], last: int, device: Device) -> set[int]:
    """The numbers of the kernels behind the last contraction for which later ones wait for long enough."""
    waits = [max(0, load_ps(part.kernel, device) - work_of(part.kernel, device)["pe"]) for part in parts[: last + 1]]
    needed = list(range(len(parts)))  # the last kernel up to the last contraction on which each one depends
    behind: dict[int, list[int]] = {}
    for part in parts[last + 1 :]:
        needed[part.number] = max((needed[other.number] for other in part.after), default=last)
        behind.setdefault(needed[part.number], []).append(part.number)
    found: set[int] = set()
    work = 0
    for place, numbers in sorted(behind.items()):
        more = sum(max(work_of(parts[number].kernel, device).values()) for number in numbers)
        if work + more <= sum(waits[place + 1 :]):
            work += more
            found.update(numbers)
    return found
