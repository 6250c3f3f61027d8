"""overlap_batch: attention of one part of a batch while the PE array works on another part's dense layers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tvm_neuron.allocation.regions import source_maps
from tvm_neuron.codegen.emit.positions import positional
from tvm_neuron.codegen.overlap.channels import cut_channels
from tvm_neuron.codegen.overlap.order import WINDOW, orders_of_need
from tvm_neuron.codegen.overlap.part import Part, find_dependences
from tvm_neuron.codegen.overlap.work import load_ps, work_of
from tvm_neuron.codegen.stage import Stage
from tvm_neuron.codegen.tiles.restrict import Rows, restrict
from tvm_neuron.codegen.tiles.usage import usage
from tvm_neuron.codegen.zones import divide
from tvm_neuron.hw import Device
from tvm_neuron.isa.dtypes import size_bytes
from tvm_neuron.schedule.expr import Axis
from tvm_neuron.schedule.kernel import Contraction, Kernel, Product, Transposition
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import PARTITIONS
from tvm_neuron.sim.clock import duration_ps

RING_SHARE = 0.8  # of the ring of weights; some is lost where it starts again
LEAST_RING = 8  # 1 / this of SBUF for weights, at least
PIECE_CYCLES = 4000  # of the PE array, about; other work finds its place between two pieces of a contraction
TURNS = (1, 2, 4)  # of the batch, each of which loads the weights again: as few as leave tensors in SBUF
MOST_PARTS = 6  # of a batch: more of them overlap little better, and take longer to compile


def overlap_batch(stage: Stage, device: Device) -> Stage | None:
    """The stage with its kernels in parts of the batch, in the order of need; None where that is of no use.

    It is for attention: there the PE array waits for softmaxes and norms, which depend on one sentence alone.
    """
    batch = _batch(stage.kernels)
    if batch < 2:
        return None
    found = (_overlapped(stage, device, batch, -(-batch // turns)) for turns in TURNS if turns < batch)
    return next((stage for stage in found if stage is not None), None)


def _overlapped(stage: Stage, device: Device, batch: int, turn: int) -> Stage | None:
    """The stage for `turn` of the batch at a time, the whole network for these before the next; None if it can't be."""
    room = divide(stage.kernels, stage.partition_of, device, 0, 0).tensors_bytes
    weights_bytes = int(RING_SHARE * (room - _most_alive(stage) * turn // batch))
    if weights_bytes <= 0:
        return None
    size = min(-(-batch // MOST_PARTS), turn)
    cut = replace(stage, kernels=[part for k in stage.kernels for part in _pieces(k, batch, size, device)])
    axes = {
        k: axis
        for k in cut.kernels
        if (axis := _batch_axis(k, batch)) and _weights(k) <= weights_bytes and (turn < batch or not _brings_in(k))
    }
    if turn < batch and not _are_apart(cut.kernels, axes):
        return None
    parts, partition_of, dtypes = in_parts(cut, axes, batch, turn, size, device)
    find_dependences(parts, partition_of)
    # Tensors get all the room that they need: weights fit into the rest.
    tuning = replace(stage.tuning, weights_share=LEAST_RING)
    for order in orders_of_need(parts, weights_bytes):
        kernels = [part.kernel for part in order]
        found = replace(stage, kernels=kernels, partition_of=partition_of, dtypes=dtypes, tuning=tuning)
        if _most_alive(found) <= room:
            return found
    return None


def in_parts(
    stage: Stage, axes: Mapping[Kernel, Axis], batch: int, turn: int, size: int, device: Device
) -> tuple[list[Part], dict[Tensor, int], dict[Tensor, str]]:
    """The kernels for `size` of the batch at a time, `turn` of it before the next; with their tensors' layouts, dtypes.

    Those without an axis of the batch come once, in the first turn.
    """
    partition_of, dtypes = dict(stage.partition_of), dict(stage.dtypes)
    alone = _cut_tensors(stage, axes)
    held: dict[int, dict[Tensor, Rows]] = {}
    for low in range(0, batch, size):
        held[low] = {t: Rows(_part(t, low, min(size, batch - low)), 0, low) for t in alone}
        partition_of |= {rows.tensor: partition_of[tensor] for tensor, rows in held[low].items()}
        dtypes |= {rows.tensor: dtypes[tensor] for tensor, rows in held[low].items()}
    parts: list[Part] = []
    for first in range(0, batch, turn):
        # So far from the turn before that they don't overlap: tensors of both would find no room.
        for number, kernel in enumerate(stage.kernels, first // turn * (len(stage.kernels) + WINDOW)):
            if kernel not in axes and first == 0:
                parts.append(Part(kernel, number, 0, work_of(kernel, device), load_ps=load_ps(kernel, device)))
            for low in range(first, min(first + turn, batch), size) if kernel in axes else ():
                piece = restrict(kernel, axes[kernel], low, min(low + size, batch), held[low])
                work = work_of(piece, device)
                parts.append(Part(piece, number, low, work, _weights(kernel), load_ps(kernel, device)))
    return parts, partition_of, dtypes


def _brings_in(kernel: Kernel) -> bool:
    """Whether it reads from DRAM: parts of that would queue behind the weights that are loaded from the start."""
    return any(tensor.kind != "temp" for tensor in kernel.sources()) or any(positional(kernel))


def _are_apart(kernels: Sequence[Kernel], axes: Mapping[Kernel, Axis]) -> bool:
    """Whether what is done once for all of the batch needs nothing that is done in turns."""
    made = {kernel.out for kernel in axes}
    return all(kernel in axes or made.isdisjoint(kernel.sources()) for kernel in kernels)


def _most_alive(stage: Stage) -> int:
    """The most bytes of a partition that tensors take at once."""
    return max(usage(stage.kernels, stage.partition_of, stage.dtypes, stage.in_dram()).alive, default=0)


def _pieces(kernel: Kernel, batch: int, size: int, device: Device) -> Iterator[Kernel]:
    """A contraction in pieces of about `PIECE_CYCLES`, each over some of its output channels."""
    if _batch_axis(kernel, batch) is None:
        yield kernel
        return
    piece_ps = duration_ps(PIECE_CYCLES, device.pe_clock_hz)
    yield from cut_channels(kernel, -(-work_of(kernel, device)["pe"] * size // (batch * piece_ps)))


def _batch(kernels: Sequence[Kernel]) -> int:
    """The length of the first of three or more dimensions of what products of run-time tensors make, else 1."""
    lengths = {k.out.shape[0] if len(k.out.shape) > 2 else 1 for k in kernels if isinstance(k.root, Product)}
    return lengths.pop() if len(lengths) == 1 else 1


def _batch_axis(kernel: Kernel, batch: int) -> Axis | None:
    """The free axis that runs over the first dimension of what the kernel makes."""
    first = kernel.out_maps[0] if kernel.out_maps else None
    if kernel.by_dma or first is None or first.const or len(first.terms) != 1:
        return None
    ((axis, step),) = first.terms.items()
    if isinstance(kernel.root, Transposition) and kernel.root.row is axis:
        return None
    elsewhere = [m for m in kernel.out_maps[1:] if axis in m.terms]
    return axis if axis in kernel.free and axis.extent == batch and step == 1 and not elsewhere else None


def _cut_tensors(stage: Stage, axes: Mapping[Kernel, Axis]) -> list[Tensor]:
    """Tensors of which every kernel that makes or reads them works on its own part of the batch."""
    whole: dict[Tensor, bool] = {}
    for kernel in stage.kernels:
        own = axes.get(kernel)
        for tensor in dict.fromkeys((kernel.out, *kernel.sources())):
            every = source_maps(kernel, tensor, stage.partition_of[tensor])
            every += [kernel.out_maps] if tensor is kernel.out else []
            here = own is not None and all(m and m[0].const == 0 and m[0].terms == {own: 1} for m in every)
            whole[tensor] = whole.get(tensor, False) or not here
    return [t for t, is_whole in whole.items() if not is_whole and t.kind == "temp" and stage.partition_of[t]]


def _part(tensor: Tensor, low: int, count: int) -> Tensor:
    return Tensor(f"{tensor.name}.batch{low}", (count, *tensor.shape[1:]), tensor.dtype, tensor.kind)


def _weights(kernel: Kernel) -> int:
    """Bytes of each partition that the kernel's weights take."""
    if not isinstance(kernel.root, Contraction):
        return 0
    return -(-kernel.root.weights.shape[0] // PARTITIONS) * kernel.root.weights[0].size * size_bytes(kernel.root.dtype)
