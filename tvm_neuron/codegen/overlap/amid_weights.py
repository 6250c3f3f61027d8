"""run_amid_weights: layers that only outputs need run where the PE array would wait for the weights of others.

A detector has a head at each of its levels. The layers of the last levels have most of the weights, which come from
DRAM for longer than the array works with them; the heads of the first levels have few, and can wait.
"""

from collections import deque
from collections.abc import Mapping, Sequence

from tvm_neuron.allocation.layouts import bytes_on_chip
from tvm_neuron.codegen.overlap.work import load_ps, work_of
from tvm_neuron.codegen.stage import Stage
from tvm_neuron.hw import Device
from tvm_neuron.schedule.kernel import Contraction, Kernel
from tvm_neuron.schedule.tensor import Tensor

_MOST_KEPT = 5  # 1 / this of SBUF, for what such layers read, which lives until they run


def run_amid_weights(stage: Stage, device: Device) -> list[Kernel]:
    """The kernels; those that the last contraction does not need come amid later ones that wait for their weights.

    They keep their place where what memory takes of weights ahead leaves the array too little to wait for.
    """
    kernels = stage.kernels
    last = max((n for n, kernel in enumerate(kernels) if isinstance(kernel.root, Contraction)), default=0)
    waits = [load_ps(kernel, device) - work_of(kernel, device)["pe"] for kernel in kernels[: last + 1]]
    ahead = stage.tuning.weights_bytes(device) * device.partitions * 10**12 // device.dram_bytes_per_second
    moved = _moved(heads_of(kernels[: last + 1]), waits, ahead, stage, device)
    found: list[Kernel] = []
    pending: deque[int] = deque()
    passed = -ahead
    for number, kernel in enumerate(kernels):
        if number in moved:
            pending.append(number)
            continue
        found.append(kernel)
        passed += max(0, waits[number]) if pending and number <= last else 0
        while pending and (passed >= -waits[pending[0]] or number == last):
            passed += waits[pending[0]]
            found.append(kernels[pending.popleft()])
    return found


def heads_of(kernels: Sequence[Kernel]) -> list[list[int]]:
    """Numbers of the kernels without which the last one can run; together those that read what others of them make."""
    needed = {kernels[-1].out, *kernels[-1].sources()} if kernels else set()
    numbers: list[int] = []
    for number in reversed(range(len(kernels) - 1)):
        if kernels[number].out in needed:
            needed.update(kernels[number].sources())
        else:
            numbers.append(number)
    heads: dict[Tensor, list[int]] = {}  # by a tensor that one of them makes
    for number in reversed(numbers):
        kernel = kernels[number]
        joined = {id(head): head for t in kernel.tensors if (head := heads.get(t)) is not None}
        head = sorted([n for part in joined.values() for n in part] + [number])
        heads.update({kernels[n].out: head for n in head})
    return sorted({id(head): head for head in heads.values()}.values())


def _moved(heads: Sequence[list[int]], waits: Sequence[int], ahead: int, stage: Stage, device: Device) -> set[int]:
    """The numbers of the kernels of heads for which later ones wait for long enough."""
    every = {number for head in heads for number in head}
    later = sum(max(0, wait) for number, wait in enumerate(waits) if number not in every) - ahead
    kept, found = 0, set[int]()
    for head in heads:
        left = later - sum(max(0, w) for n, w in enumerate(waits[: head[-1]]) if n not in every)
        work = -sum(waits[number] for number in found | set(head))
        size = _kept_bytes([stage.kernels[number] for number in head], stage.partition_of, stage.dtypes)
        if work <= left and kept + size <= device.sbuf_bytes_per_partition // _MOST_KEPT:
            kept += size
            found.update(head)
    return found


def _kept_bytes(head: Sequence[Kernel], partition_of: Mapping[Tensor, int], dtypes: Mapping[Tensor, str]) -> int:
    """Of each partition, what these kernels read that others make."""
    made = {kernel.out for kernel in head}
    read = {tensor for kernel in head for tensor in kernel.sources()} - made
    return sum(bytes_on_chip(dtypes[t], partition_of[t], t.shape) for t in read if t.kind == "temp")
