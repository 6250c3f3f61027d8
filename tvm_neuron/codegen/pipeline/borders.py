"""places, stages: where the list of kernels can be cut, and the stages that follow from a cut."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from tvm_neuron.codegen.stage import Stage
from tvm_neuron.neff import TensorInfo
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.tensor import Tensor


def places(kernels: Sequence[Kernel]) -> list[int]:
    """Where a cut can be: before the kernel of that number, but not between two that write parts of one tensor."""
    spans: dict[Tensor, tuple[int, int]] = {}
    for number, kernel in enumerate(kernels):
        spans[kernel.out] = (spans.get(kernel.out, (number, number))[0], number)
    free = [True] * len(kernels)
    for first, last in spans.values():
        free[first + 1 : last + 1] = [False] * (last - first)
    return [number for number in range(1, len(kernels)) if free[number]]


def stages(whole: Stage, cuts: Sequence[int]) -> list[Stage]:
    """The stages between the cuts; what one makes and a later one reads gets a name that no other tensor has."""
    bounds = [0, *cuts, len(whole.kernels)]
    parts = [whole.kernels[start:end] for start, end in pairwise(bounds)]
    written = [_unique(kernel.out for kernel in part) for part in parts]
    read = [_unique(tensor for kernel in part for tensor in kernel.sources()) for part in parts]
    maker = {tensor: number for number, tensors in enumerate(written) for tensor in tensors}
    crossing = _unique(t for number, tensors in enumerate(read) for t in tensors if maker.get(t, number) < number)
    between = [tensor for tensor in crossing if tensor not in whole.outputs]
    infos = _infos(whole, between)
    found = []
    for number, part in enumerate(parts):
        given = [t for t in whole.inputs if t in read[number] or (number == 0 and not any(t in r for r in read))]
        given += [t for t in read[number] if maker.get(t, number) < number]
        made = [t for t in written[number] if t in whole.outputs or t in crossing]
        inputs = {t: infos[t] for t in given}
        outputs = {t: infos[t] for t in made}
        images = frozenset(t for t in (*given, *made) if t in between and whole.image_shape(t))
        name = f"{whole.name}.{number}"
        found.append(replace(whole, name=name, kernels=part, inputs=inputs, outputs=outputs, images=images))
    return found


def _infos(whole: Stage, borders: Iterable[Tensor]) -> dict[Tensor, TensorInfo]:
    infos = {**whole.inputs, **whole.outputs}
    taken = {info.name for info in infos.values()}
    for tensor in borders:
        name, serial = tensor.name, 1
        while name in taken:
            serial += 1
            name = f"{tensor.name}.{serial}"
        taken.add(name)
        shape = whole.image_shape(tensor) or tuple(tensor.shape[d] for d in whole.dram_order(tensor))
        infos[tensor] = TensorInfo(name, shape, whole.dtype(tensor))
    return infos


def _unique(tensors: Iterable[Tensor]) -> dict[Tensor, None]:
    return dict.fromkeys(tensors)
