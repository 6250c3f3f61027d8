"""write_padding: a convolution also computes places in the padding around its output, which are filled after it.

So squares of 2 x 2 pixels on the partitions may begin in the padding: a window of 3 x 3 for all 4 pixels of a square is
4 x 4 pixels, which lie in 4 squares then, and in 9 if squares begin beside the padding.
"""

from collections.abc import Sequence
from dataclasses import replace

from tvm_neuron.codegen.kernels.bring_in import border, fill
from tvm_neuron.codegen.kernels.channels import has_plain_constants
from tvm_neuron.codegen.kernels.row_axes import COLUMNS, ROWS, is_fill, row_of, window_of
from tvm_neuron.schedule.expr import Axis
from tvm_neuron.schedule.kernel import Contraction, Kernel
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.operations import PARTITION_START_STEP
from tvm_neuron.schedule.tensor import Tensor

_DIMS = (ROWS, COLUMNS)


def write_padding(kernels: Sequence[Kernel], image: Tensor) -> list[Kernel] | None:
    """The kernels where the one that computes the image writes one row and column of padding on each side.

    None unless a single convolution computes it from a padded input, and convolutions of 3 x 3 read it.
    """
    writers = [kernel for kernel in kernels if kernel.out is image and not is_fill(kernel)]
    fills = [kernel for kernel in kernels if kernel.out is image and is_fill(kernel)]
    if len(writers) != 1 or not fills or image.shape[1] % PARTITION_START_STEP:
        return None
    (writer,) = writers
    root = writer.root
    if not isinstance(root, Contraction) or not is_padded_by_one(writer) or any(writer.operand_loads()):
        return None
    if not all(reads_as_window_of_3(kernel, image) for kernel in kernels if image in kernel.sources()):
        return None
    more = {along: _beyond(writer, root, along) for along in _DIMS}
    source = [kernel for kernel in kernels if kernel.out is root.data]
    needed = [beyond for beyond in more.values() if beyond is not None]
    fillings = {kernel.expr for kernel in source if is_fill(kernel)}
    if len(needed) < len(_DIMS) or len(fillings) != 1 or sum(root.data in kernel.sources() for kernel in kernels) != 1:
        return None
    moves = [kernel for kernel in source if kernel.by_dma]
    if len(moves) != 1 or len(moves) + sum(map(is_fill, source)) < len(source):
        return None
    wider = _wider(root.data, needed)
    ring = [fill(image, fills[0], 1, box, fills[0].expr) for along in _DIMS for box in _edges(image, along)]
    found: list[Kernel] = []
    for kernel in kernels:
        if kernel is writer:
            found += [writing_more(writer, root, wider, needed), *ring]
        elif kernel is moves[0]:
            moved = _moved(kernel, wider, needed)
            inside = [(part.span[0], part.span[1] + 1) for part in moved.out_maps]
            (value,) = fillings
            found += [fill(wider, kernel, 1, box, value) for box in border(wider.shape, 1, inside)]
            found.append(moved)
        elif kernel.out is not root.data and kernel not in fills:
            found.append(kernel)
    return found


def _edges(image: Tensor, along: int) -> list[list[tuple[int, int]]]:
    """The first and the last row, or column, all of it: boxes that meet cut the folded ones into fewer."""
    inside = [(0, extent) for extent in image.shape]
    inside[along] = 1, image.shape[along] - 1
    return border(image.shape, 1, inside)


def is_padded_by_one(writer: Kernel) -> bool:
    """Whether it writes an even number of rows and columns with one of padding on each side."""
    axes = [(along, row_of(writer, along)) for along in _DIMS]
    return has_plain_constants(writer, axes[0][1]) and all(
        axis is not None
        and axis.extent % 2 == 0
        and writer.out_maps[along] == Linear(1, {axis: 1})
        and writer.out.shape[along] == axis.extent + 2
        for along, axis in axes
    )


def reads_as_window_of_3(kernel: Kernel, image: Tensor) -> bool:
    """Whether it is a convolution by windows of 3 x 3, one for each pixel inside of one of padding."""
    root = kernel.root
    if not isinstance(root, Contraction) or list(kernel.sources()) != [image] or not root.has_zeros:
        return False
    windows = [window_of(root, along) for along in _DIMS]
    return all(
        window is not None
        and (window.const, window.stride, window.dilation) == (0, 1, 1)
        and window.step is not None
        and window.step.extent == 3
        for window in windows
    )


def _beyond(writer: Kernel, root: Contraction, along: int) -> tuple[int, int] | None:
    """How many rows before the first and behind the last of its data the padding is computed from."""
    window, row = window_of(root, along), row_of(writer, along)
    if window is None or window.row is not row:
        return None
    extent = window.step.extent if window.step else 1
    last = window.const + window.stride * row.extent + window.dilation * (extent - 1)
    return max(0, window.stride - window.const), max(0, last + 1 - root.data.shape[along])


def _wider(data: Tensor, more: Sequence[tuple[int, int]]) -> Tensor:
    shape = list(data.shape)
    for along, (before, after) in zip(_DIMS, more, strict=True):
        shape[along] += before + after
    return Tensor(data.name, tuple(shape), data.dtype)


def _moved(kernel: Kernel, wider: Tensor, more: Sequence[tuple[int, int]]) -> Kernel:
    """The kernel that brings the data, to where they lie in the wider tensor."""
    maps = list(kernel.out_maps)
    for along, (before, _) in zip(_DIMS, more, strict=True):
        maps[along] = maps[along] + Linear(before)
    return replace(kernel, out=wider, out_maps=tuple(maps))


def writing_more(writer: Kernel, root: Contraction, wider: Tensor, more: Sequence[tuple[int, int]]) -> Kernel:
    """The convolution of the wider tensor, from one row and column before its first to one behind its last."""
    out, maps, free = list(writer.out_maps), list(root.maps), list(writer.free)
    for along, (before, _) in zip(_DIMS, more, strict=True):
        row = row_of(writer, along)
        assert row is not None
        larger = Axis(row.name, row.extent + 2)
        out[along] = Linear(0, {larger: 1})
        terms = {larger if axis is row else axis: by for axis, by in maps[along].terms.items()}
        maps[along] = Linear(maps[along].const - terms[larger] + before, terms)
        free[free.index(row)] = larger
    root = replace(root, data=wider, maps=tuple(maps))
    return replace(writer, out_maps=tuple(out), free=tuple(free), root=root)
