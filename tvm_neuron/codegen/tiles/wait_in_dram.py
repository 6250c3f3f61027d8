"""wait_in_dram: a tensor that only a copy reads, long after, waits in DRAM where weights need its memory more.

Between, the PE array waits for weights: memory that the tensor leaves lets more of them come before. It goes out while
DMA has little else to do, and comes back so, straight to where the copy would have moved it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from math import prod

from tvm_neuron.codegen.overlap.work import load_ps, work_of
from tvm_neuron.codegen.stage import Stage
from tvm_neuron.codegen.tiles.copies import copy_of
from tvm_neuron.codegen.tiles.restrict import Rows, restrict
from tvm_neuron.codegen.tiles.usage import steps_of
from tvm_neuron.hw import Device
from tvm_neuron.isa.dtypes import size_bytes
from tvm_neuron.schedule.expr import Load
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.sim.clock import duration_ps


def wait_in_dram(stage: Stage, device: Device) -> Stage:
    """The stage, in which such tensors are stored and loaded."""
    kernels = list(stage.kernels)
    work = [work_of(kernel, device)["pe"] for kernel in kernels]
    idle = [ps - load_ps(kernel, device) for ps, kernel in zip(work, kernels, strict=True)]
    partition_of, dtypes, spilled = dict(stage.partition_of), dict(stage.dtypes), set(stage.spilled)
    moved: dict[int, list[Kernel]] = {}
    gone: set[int] = set()
    for tensor, written, read in _candidates(kernels, dtypes):
        taken = duration_ps(tensor.elems * size_bytes(dtypes[tensor]), device.dram_bytes_per_second)
        ahead = stage.tuning.weights_bytes(device) * device.partitions
        if not _is_worth(idle[written + 1 : read], taken, duration_ps(ahead, device.dram_bytes_per_second)):
            continue
        stored = Tensor(f"{tensor.name}.stored", tensor.shape, tensor.dtype)
        partition_of[stored], dtypes[stored] = partition_of[tensor], dtypes[tensor]
        spilled.add(stored)
        whole = (tensor.shape, partition_of[tensor])
        zero = [0] * len(tensor.shape)
        store = copy_of(kernels[written].origins[0], *whole, (tensor, zero), (stored, zero), by_dma=True)
        load = replace(restrict(kernels[read], None, 0, 1, {tensor: Rows(stored, 0, 0)}), by_dma=True)
        # Other tensors take its memory, and wait for that, when it has gone.
        moved.setdefault(_after(work, range(written + 1, read), taken), []).append(store)
        moved.setdefault(_after(work, range(read - 1, written, -1), taken), []).append(load)
        gone.add(read)
    found = [k for n, kernel in enumerate(kernels) for k in (*moved.get(n, ()), *([] if n in gone else [kernel]))]
    return replace(stage, kernels=found, partition_of=partition_of, dtypes=dtypes, spilled=frozenset(spilled))


def _candidates(kernels: Sequence[Kernel], dtypes: Mapping[Tensor, str]) -> Iterator[tuple[Tensor, int, int]]:
    """Tensors with the step that writes them last, and that of the copy that alone reads them and begins another."""
    touched = steps_of(kernels)
    for tensor, steps in touched.items():
        copy = kernels[steps[-1]]
        is_copy = copy.root is None and not copy.by_dma and isinstance(copy.expr, Load) and copy.expr.tensor is tensor
        if tensor.kind != "temp" or not is_copy or any(tensor in kernels[step].sources() for step in steps[:-1]):
            continue
        is_whole = prod(axis.extent for axis in (copy.channel, *copy.free)) == tensor.elems
        if is_whole and len(steps) > 1 and touched[copy.out][0] == steps[-1] and dtypes[copy.out] == dtypes[tensor]:
            yield tensor, steps[-2], steps[-1]


def _is_worth(idle: Sequence[int], taken: int, ahead: int) -> bool:
    """Whether DMA lacks that much time where it lacks most, and has as much before, beside weights ahead, and after."""
    passed = [0, *accumulate(idle)]
    most = list(accumulate(passed, max))
    lacking, end = max((high - now, n) for n, (high, now) in enumerate(zip(most, passed, strict=True)))
    return lacking >= taken and most[end] >= taken + ahead and passed[-1] - passed[end] >= taken


def _after(work: Sequence[int], steps: range, taken: int) -> int:
    """The first of these steps by which the PE array was at work for that long in those before it."""
    passed = accumulate((work[step] for step in steps), initial=0)
    return next((step for step, ps in zip(steps, passed, strict=False) if ps >= taken), steps[-1])
