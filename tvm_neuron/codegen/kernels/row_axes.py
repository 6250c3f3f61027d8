"""row_axes: which axes of a kernel run along the rows of an image, or along its columns."""

from dataclasses import dataclass

from tvm_neuron.schedule.expr import Axis, Load, Num
from tvm_neuron.schedule.graph import linear_indices
from tvm_neuron.schedule.kernel import Contraction, Kernel
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor

ROWS, COLUMNS = 2, 3  # dimensions of an image
_DIMS = 4  # images, channels, rows, columns


@dataclass(frozen=True, eq=False)
class Interlaced(Contraction):
    """What kernels multiply that write the rows of an image in turn; apart from them, all is that of the first one.

    Only for the choice of folds: a folded kernel is a plain contraction, and others are as they were.
    """

    phases: tuple[Kernel, ...] = ()  # in the order of the rows


@dataclass(frozen=True)
class Window:
    """Along the rows of the data, a contraction reads `const + stride * row + dilation * step`.

    Of `per` phases each, those of the first one; from one row to the next of the same phase it is `stride`.
    """

    row: Axis
    stride: int
    const: int
    step: Axis | None
    dilation: int
    per: int = 1


def channel_terms(kernel: Kernel) -> dict[Axis, int]:
    """How it steps along the channels of an image: not at all where there is one."""
    return {kernel.channel: 1} if kernel.channel.extent > 1 else {}


def is_fill(kernel: Kernel) -> bool:
    """Whether it writes a number into a part of a tensor."""
    return kernel.root is None and not kernel.by_dma and isinstance(kernel.expr, Num)


def row_of(kernel: Kernel, along: int = ROWS) -> Axis | None:
    """The axis along the rows, or the columns, that an arithmetic kernel writes channel by channel; None for others."""
    maps = kernel.out_maps
    is_arithmetic = not kernel.by_dma and (kernel.root is None or isinstance(kernel.root, Contraction))
    if not is_arithmetic or len(maps) != _DIMS or maps[1].terms != channel_terms(kernel):
        return None
    row = next(iter(maps[along].terms), None)
    others = (maps[0], maps[_across(along)])
    if row is None or maps[along].terms != {row: 1} or any({row, kernel.channel} & set(part.terms) for part in others):
        return None
    return row


def window_of(root: Contraction, along: int = ROWS) -> Window | None:
    """How a contraction reads the rows of its data, or the columns, all channels of which it sums; else None."""
    if len(root.maps) != _DIMS or root.maps[1] != Linear(0) or root.weights.shape[0] != root.data.shape[1]:
        return None
    part = root.maps[along]
    steps = [axis for axis in part.terms if axis in root.steps]
    others = [axis for axis in part.terms if axis not in root.steps]
    if len(others) != 1 or len(steps) > 1 or min(part.terms.values()) < 1:
        return None
    if any(axis in root.maps[d].terms for d in (0, _across(along)) for axis in part.terms):
        return None
    step = steps[0] if steps else None
    per = len(root.phases) if isinstance(root, Interlaced) and along == ROWS else 1
    return Window(others[0], part.terms[others[0]], part.const, step, part.terms[step] if step else 0, per)


def is_store(kernel: Kernel) -> bool:
    """Whether it only moves what it reads into device memory, by DMA or otherwise."""
    return kernel.root is None and kernel.out.is_stored and isinstance(kernel.expr, Load) and not kernel.is_turned


def stored_row(kernel: Kernel, tensor: Tensor, along: int = ROWS) -> Axis | None:
    """The axis along the rows of a tensor all channels of which the kernel stores; None of other kernels."""
    load = kernel.expr
    maps = linear_indices(load.indices) if isinstance(load, Load) and load.tensor is tensor else None
    if not is_store(kernel) or maps is None or len(maps) != _DIMS:
        return None
    row = next(iter(maps[along].terms), None)
    is_all = maps[1] == Linear(0, channel_terms(kernel)) and kernel.channel.extent == tensor.shape[1]
    if row is None or row is kernel.channel or maps[along].terms != {row: 1} or not is_all:
        return None
    return None if any(row in maps[d].terms for d in (0, _across(along))) else row


def _across(along: int) -> int:
    """The dimension of an image that is neither its channels nor the one along."""
    return ROWS + COLUMNS - along
