"""in_parts: kernels for parts of a batch, on tensors that hold these parts alone."""

from collections.abc import Mapping, Sequence, Set

from tvm_neuron.allocation.regions import source_maps
from tvm_neuron.codegen.overlap.order import WINDOW
from tvm_neuron.codegen.overlap.part import Part
from tvm_neuron.codegen.overlap.work import load_ps, work_of
from tvm_neuron.codegen.stage import Stage
from tvm_neuron.codegen.tiles.restrict import Rows, restrict
from tvm_neuron.hw import Device
from tvm_neuron.isa.dtypes import size_bytes
from tvm_neuron.schedule.expr import Axis
from tvm_neuron.schedule.kernel import Contraction, Kernel, Transposition
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import PARTITIONS


def in_parts(
    stage: Stage, axes: Mapping[Kernel, Axis], last: Set[Kernel], batch: int, turn: int, size: int, device: Device
) -> tuple[list[Part], dict[Tensor, int], dict[Tensor, str]]:
    """The kernels for `size` of the batch at a time, `turn` of it before the next; with their tensors' layouts, dtypes.

    Those without an axis of the batch come once, in the first turn or, those in `last`, in the last one.
    """
    partition_of, dtypes = dict(stage.partition_of), dict(stage.dtypes)
    alone = cut_tensors(stage.kernels, axes, stage.partition_of)
    held: dict[int, dict[Tensor, Rows]] = {}
    spans = {
        first: [(low, min(low + size, first + turn, batch)) for low in range(first, min(first + turn, batch), size)]
        for first in range(0, batch, turn)
    }
    for low, end in (span for turn_spans in spans.values() for span in turn_spans):
        held[low] = {t: Rows(part_of(t, low, end - low), 0, low) for t in alone}
        partition_of |= {rows.tensor: partition_of[tensor] for tensor, rows in held[low].items()}
        dtypes |= {rows.tensor: dtypes[tensor] for tensor, rows in held[low].items()}
    parts: list[Part] = []
    for first in spans:
        # So far from the turn before that they don't overlap: tensors of both would find no room.
        for number, kernel in enumerate(stage.kernels, first // turn * (len(stage.kernels) + WINDOW)):
            if kernel not in axes and (first + turn >= batch if kernel in last else first == 0):
                parts.append(Part(kernel, number, 0, work_of(kernel, device), load_ps=load_ps(kernel, device)))
            for low, end in spans[first] if kernel in axes else ():
                piece = restrict(kernel, axes[kernel], low, end, held[low])
                work = work_of(piece, device)
                parts.append(Part(piece, number, low, work, weights_bytes(kernel), load_ps(kernel, device)))
    return parts, partition_of, dtypes


def after_turns(kernels: Sequence[Kernel], axes: Mapping[Kernel, Axis]) -> set[Kernel] | None:
    """Those done once for all of the batch that need what is done in turns; None if one in turns needs them."""
    in_turns = {kernel.out for kernel in axes}
    found: set[Kernel] = set()
    made: set[Tensor] = set()
    for kernel in kernels:
        if kernel in axes and not made.isdisjoint(kernel.tensors):
            return None
        if kernel not in axes and not (in_turns | made).isdisjoint(kernel.sources()):
            found.add(kernel)
            made.add(kernel.out)
    return found


def batch_axis(kernel: Kernel, batch: int) -> Axis | None:
    """The free axis that runs over the first dimension of what an engine makes."""
    return None if kernel.by_dma else first_axis(kernel, batch)


def first_axis(kernel: Kernel, batch: int) -> Axis | None:
    """The free axis that runs over the first dimension of what the kernel makes."""
    first = kernel.out_maps[0] if kernel.out_maps else None
    if first is None or first.const or len(first.terms) != 1:
        return None
    ((axis, step),) = first.terms.items()
    if axis in kernel.whole or (isinstance(kernel.root, Transposition) and kernel.root.row is axis):
        return None
    elsewhere = [m for m in kernel.out_maps[1:] if axis in m.terms]
    return axis if axis in kernel.free and axis.extent == batch and step == 1 and not elsewhere else None


def cut_tensors(
    kernels: Sequence[Kernel], axes: Mapping[Kernel, Axis], partition_of: Mapping[Tensor, int]
) -> list[Tensor]:
    """Tensors that may be one for each part of the batch."""
    return [t for t in by_image(kernels, axes, partition_of) if t.kind == "temp" and partition_of[t]]


def by_image(
    kernels: Sequence[Kernel], axes: Mapping[Kernel, Axis], partition_of: Mapping[Tensor, int]
) -> list[Tensor]:
    """Tensors of which every one of the kernels that makes or reads them works on its own part of the batch."""
    whole: dict[Tensor, bool] = {}
    for kernel in kernels:
        own = axes.get(kernel)
        for tensor in kernel.tensors:
            every = source_maps(kernel, tensor, partition_of[tensor])
            every += [kernel.out_maps] if tensor is kernel.out else []
            here = own is not None and all(m and m[0].const == 0 and m[0].terms == {own: 1} for m in every)
            is_known = every != []  # what is looked up at positions may be any image's
            whole[tensor] = whole.get(tensor, False) or not (here and is_known)
    return [tensor for tensor, is_whole in whole.items() if not is_whole]


def part_of(tensor: Tensor, low: int, count: int) -> Tensor:
    """A tensor for some images of another one."""
    return Tensor(f"{tensor.name}.batch{low}", (count, *tensor.shape[1:]), tensor.dtype, tensor.kind)


def weights_bytes(kernel: Kernel) -> int:
    """Bytes of each partition that the kernel's weights take."""
    if not isinstance(kernel.root, Contraction):
        return 0
    return -(-kernel.root.weights.shape[0] // PARTITIONS) * kernel.root.weights[0].size * size_bytes(kernel.root.dtype)
