"""overlap_batch: attention of one part of a batch while the PE array works on another part's dense layers."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tvm_neuron.codegen.emit.positions import positional
from tvm_neuron.codegen.kernels.channels import cut_channels
from tvm_neuron.codegen.overlap.defer import defer
from tvm_neuron.codegen.overlap.depth import cut_depth
from tvm_neuron.codegen.overlap.in_parts import after_turns, batch_axis, in_parts, weights_bytes
from tvm_neuron.codegen.overlap.order import orders_of_need
from tvm_neuron.codegen.overlap.part import find_dependences
from tvm_neuron.codegen.overlap.slices import slice_tensors
from tvm_neuron.codegen.overlap.work import work_of
from tvm_neuron.codegen.residents import Room, place_whole
from tvm_neuron.codegen.stage import Stage
from tvm_neuron.codegen.tiles.usage import usage
from tvm_neuron.codegen.zones import divide
from tvm_neuron.hw import Device
from tvm_neuron.schedule.kernel import Kernel, Product
from tvm_neuron.sim.clock import duration_ps

RING_SHARE = 0.6  # of the ring of weights for kernels under way; the next ones' weights come meanwhile
PIECE_CYCLES = 4000  # of the PE array, about; other work finds its place between two pieces of a contraction
TURNS = (1, 2, 4)  # of the batch, each of which loads the weights again: as few as leave tensors in SBUF
MOST_PARTS = 6  # of a batch: more of them overlap little better, and take longer to compile


def overlap_batch(stage: Stage, device: Device) -> tuple[Stage, Room] | None:
    """The stage with its kernels in parts of the batch, in the order of need, and its room; None if it is of no use.

    It is for attention: there the PE array waits for softmaxes and norms, which depend on one sentence alone.
    """
    batch = _batch(stage.kernels)
    if batch < 2:
        return None
    plans = [(turns, is_sliced) for turns in TURNS if turns < batch for is_sliced in (False, True)]
    found = (_overlapped(stage, device, batch, -(-batch // turns), is_sliced) for turns, is_sliced in plans)
    return next((pair for pair in found if pair is not None), None)


def _overlapped(stage: Stage, device: Device, batch: int, turn: int, is_sliced: bool) -> tuple[Stage, Room] | None:
    """The stage for `turn` of the batch at a time, the whole network for these before the next; None if it can't be."""
    size = min(-(-batch // MOST_PARTS), turn)
    cut = _cut(stage, device, batch, size, is_sliced)
    room = divide(cut.kernels, cut.partition_of, device, 0, 0).tensors_bytes
    weights = int(RING_SHARE * (room - _most_alive(cut if is_sliced else stage) * turn // batch))
    if weights <= 0:
        return None
    axes = {
        k: axis
        for k in cut.kernels
        if (axis := batch_axis(k, batch)) and weights_bytes(k) <= weights and (turn < batch or not _brings_in(k))
    }
    last = after_turns(cut.kernels, axes) if turn < batch else set()
    if last is None:
        return None
    parts, partition_of, dtypes = in_parts(cut, axes, last, batch, turn, size, device)
    find_dependences(parts, partition_of)
    for order in orders_of_need(parts, weights):
        found = replace(stage, kernels=[part.kernel for part in order], partition_of=partition_of, dtypes=dtypes)
        place = place_whole(found, device) if _most_alive(found) <= room else None
        if place is not None:
            return found, place
    return None


def _cut(stage: Stage, device: Device, batch: int, size: int, is_sliced: bool) -> Stage:
    """The stage with long contractions in pieces; if asked for, with tensors in slices of channels too."""
    partition_of, dtypes = dict(stage.partition_of), dict(stage.dtypes)
    kernels = cut_depth(stage.kernels, partition_of, dtypes) if is_sliced else stage.kernels
    kernels = [part for k in kernels for part in _pieces(k, batch, size, device)]
    if is_sliced:
        kernels, late = slice_tensors(kernels, partition_of, dtypes)
        kernels = defer(kernels, late, partition_of)
    return replace(stage, kernels=kernels, partition_of=partition_of, dtypes=dtypes)


def _pieces(kernel: Kernel, batch: int, size: int, device: Device) -> Iterator[Kernel]:
    """A contraction in pieces of about `PIECE_CYCLES`, each over some of its output channels."""
    if batch_axis(kernel, batch) is None:
        yield kernel
        return
    piece_ps = duration_ps(PIECE_CYCLES, device.pe_clock_hz)
    yield from cut_channels(kernel, -(-work_of(kernel, device)["pe"] * size // (batch * piece_ps)))


def _batch(kernels: Sequence[Kernel]) -> int:
    """The length of the first of three or more dimensions of what products of run-time tensors make, else 1."""
    lengths = {k.out.shape[0] if len(k.out.shape) > 2 else 1 for k in kernels if isinstance(k.root, Product)}
    return lengths.pop() if len(lengths) == 1 else 1


def _brings_in(kernel: Kernel) -> bool:
    """Whether it reads from DRAM: parts of that would queue behind the weights that are loaded from the start."""
    return any(tensor.kind != "temp" for tensor in kernel.sources()) or any(positional(kernel))


def _most_alive(stage: Stage) -> int:
    """The most bytes of a partition that tensors take at once."""
    return max(usage(stage.kernels, stage.partition_of, stage.dtypes, stage.in_dram()).alive, default=0)
