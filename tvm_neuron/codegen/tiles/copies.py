"""copy_of: the kernel that moves a box of a tensor to a box of another one."""

from collections.abc import Sequence

from tvm_neuron.program import Origin
from tvm_neuron.schedule.expr import Axis, Load
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor

Place = tuple[Tensor, Sequence[int]]  # and where the box begins in it


def copy_of(origin: Origin, shape: Sequence[int], part: int, source: Place, target: Place, by_dma: bool) -> Kernel:
    """Copies `shape` elements, dimension `part` of which lies on the partitions, by DMA or by an engine."""
    axes = [Axis(f"c{d}", extent) for d, extent in enumerate(shape)]
    steps = [Linear(0, {axis: 1} if axis.extent > 1 else {}) for axis in axes]
    (read, read_at), (written, written_at) = source, target
    out_of = [step + Linear(at) for step, at in zip(steps, read_at, strict=True)]
    into = tuple(step + Linear(at) for step, at in zip(steps, written_at, strict=True))
    free = tuple(axis for d, axis in enumerate(axes) if d != part and axis.extent > 1)
    load = Load(read, tuple(found.expr() for found in out_of))
    return Kernel((origin,), written, into, axes[part], free, load, by_dma=by_dma)
