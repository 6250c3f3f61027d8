"""pack_depth: a convolution of few channels reads several window rows at once, as further partitions.

Three channels use 3 of the PE array's 128 rows, and a 7x7 window takes 49 matmuls. With the window's rows laid on
partitions beside the channels the same sum takes 7 matmuls of 21 rows. The DMA that brings the data in lays them out.
Of a window whose columns find room there too, DMA moves them to further partitions: 3x3 takes one matmul of 27 rows.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from tvm_neuron.codegen.kernels.bring_in import Source, bring_in, fill, source_of
from tvm_neuron.codegen.kernels.pack_window import pack_window
from tvm_neuron.codegen.tiles.usage import usage
from tvm_neuron.codegen.zones import divide
from tvm_neuron.errors import CompileError
from tvm_neuron.hw import Device
from tvm_neuron.isa import Affine, DmaCopy, Tile
from tvm_neuron.schedule.expr import Axis, Load, Num
from tvm_neuron.schedule.kernel import Contraction, Kernel
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.sim.clock import duration_ps

FEW_CHANNELS = 16
_IMAGE_SHARE = 2 / 3  # of the memory for tensors, for what is alive of an image at most if images run as a whole


def pack_depth(
    kernels: list[Kernel], partition_of: dict[Tensor, int], dtypes: Mapping[Tensor, str], device: Device, ring: int
) -> list[Kernel]:
    """The kernels with such contractions packed, each after the moves that lay out its data.

    Where whole images fit beside a `ring` of so many bytes of each partition for weights, columns are packed too.
    """
    found: list[Kernel] = []
    gone: set[Kernel] = set()
    for kernel in kernels:
        root = kernel.root
        packed = None
        if isinstance(root, Contraction) and root.weights.shape[0] <= FEW_CHANNELS:
            source = source_of(root.data, kernels, partition_of)
            picked = _window_axis(root, partition_of[root.data], device)
            if source is not None:
                room = _room(kernels, kernel, root, partition_of, dtypes, device, ring)
                packed = pack_window(kernel, root, source, partition_of, room, device)
            if packed is None and source is not None and picked is not None:
                packed = _pack(kernel, root, source, *picked, partition_of, device)
            if source is not None and packed is not None:
                gone.update(source.made_by)
        found += packed or [kernel]
    return [kernel for kernel in found if kernel not in gone]


def packed_steps(kernel: Kernel, device: Device) -> int:
    """How many window rows of the kernel's data lie on partitions at once if it is packed."""
    root = kernel.root
    if not isinstance(root, Contraction) or root.weights.shape[0] > FEW_CHANNELS:
        return 1
    picked = _window_axis(root, 1, device)
    return picked[0].extent if picked else 1


def _room(
    kernels: list[Kernel], kernel: Kernel, root: Contraction, partition_of: dict[Tensor, int],
    dtypes: Mapping[Tensor, str], device: Device, ring: int,
) -> int:  # fmt: skip
    """Bytes of each partition for the packed data of an image, if all that is alive of one fits at any time; else 0."""
    try:
        capacity = divide(kernels, partition_of, device, 0, ring).tensors_bytes
    except CompileError:  # there is none at all, which is refused where tensors are placed
        return 0
    outside = {t for k in kernels for t in (k.out, *k.sources()) if t.kind != "temp"}
    alive = usage(kernels, partition_of, dtypes, outside | {root.data}).alive
    most, images = int(_IMAGE_SHARE * capacity), root.data.shape[0]
    return most - alive[kernels.index(kernel)] // images if max(alive) // images <= most else 0


def _window_axis(root: Contraction, partition_dim: int, device: Device) -> tuple[Axis, int, Axis] | None:
    """(window axis, dimension it moves along, output axis of that dimension); rows stay whole, so not the last one."""
    for step in root.steps:
        dims = [d for d, m in enumerate(root.maps) if step in m.terms]
        if len(dims) != 1 or dims[0] in (partition_dim, len(root.maps) - 1):
            continue
        others = [axis for axis in root.maps[dims[0]].terms if axis is not step]
        if len(others) == 1 and others[0] not in root.steps and root.weights.shape[0] * step.extent <= device.pe_rows:
            return step, dims[0], others[0]
    return None


def _pack(
    kernel: Kernel, root: Contraction, source: Source, step: Axis, dim: int, row: Axis,
    partition_of: dict[Tensor, int], device: Device,
) -> list[Kernel] | None:  # fmt: skip
    part, last = partition_of[root.data], len(root.maps) - 1
    moves = root.maps[dim].terms
    shape = list(root.data.shape)
    shape[part], shape[dim] = root.weights.shape[0] * step.extent, row.extent
    column = _column_axis(root, step, part, shape, device)
    image = Tensor(f"{root.data.name}.packed", tuple(shape), root.data.dtype)
    rows = [Linear(root.maps[dim].const + moves[step] * w, {row: moves[row]}) for w in range(step.extent)]
    brought = None if root.maps[part].const else bring_in(source, image, kernel, part, dim, rows)
    if brought is None:
        return None
    taken = (step,) if column is None else (column, step)
    weights = np.moveaxis(root.weights, [1 + root.steps.index(axis) for axis in taken], range(len(taken)))
    weights = weights.reshape(-1, *weights.shape[len(taken) + 1 :])
    maps = [Linear(m.const, m.terms) for m in root.maps]
    maps[part], maps[dim] = Linear(0), Linear(0, {row: 1})
    packed = image
    if column is not None:
        shape[part] *= column.extent
        packed = Tensor(image.name, tuple(shape), image.dtype)
        brought = [replace(k, out=packed) for k in brought]
        brought = [*_rest(packed, kernel, part, column.extent), *brought, *_moved(packed, kernel, part, column.extent)]
        maps[last] = Linear(maps[last].const, {axis: by for axis, by in maps[last].terms.items() if axis is not column})
    partition_of[packed] = part
    steps = tuple(axis for axis in root.steps if axis not in taken)
    new_root = replace(root, data=packed, maps=tuple(maps), steps=steps, weights=weights)
    return [*brought, replace(kernel, root=new_root)]


def _column_axis(root: Contraction, step: Axis, part: int, shape: Sequence[int], device: Device) -> Axis | None:
    """The window's axis along packed rows of this shape, if its columns find room and DMA moves them quickly enough."""
    last = len(root.maps) - 1
    found = [axis for axis in root.steps if axis is not step and root.maps[last].terms.get(axis) == 1]
    if len(found) != 1 or part == last or shape[part] * found[0].extent > device.pe_rows:
        return None
    copies = found[0].extent - 1
    elems = prod(extent for d, extent in enumerate(shape) if d != part)
    moved = Tile("sbuf", root.dtype, Affine(), shape[part], Affine(), ((1, elems),))
    dma = copies * DmaCopy(target=moved, source=moved, ring=0).cost(device).busy_cycles
    tiles = -(-root.weights.shape[-1] // device.pe_columns)
    saved = duration_ps(copies * tiles * prod(axis.extent for axis in _free(root)), device.pe_clock_hz)
    return found[0] if 1000 * dma < saved else None


def _free(root: Contraction) -> set[Axis]:
    return {axis for part in root.maps for axis in part.terms} - {*root.steps}


def _rest(packed: Tensor, like: Kernel, part: int, shifts: int) -> list[Kernel]:
    """Zeros where copies end, which nothing reads."""
    box = [(0, extent) for extent in packed.shape]
    box[-1] = (packed.shape[-1] - shifts + 1, packed.shape[-1])
    return [fill(packed, like, part, box, Num(0.0))]


def _moved(packed: Tensor, like: Kernel, part: int, shifts: int) -> Iterator[Kernel]:
    """The packed rows again for each further column of the window, moved back by as many elements."""
    depth = packed.shape[part] // shifts
    for shift in range(1, shifts):
        extents = list(packed.shape)
        extents[part], extents[-1] = depth, packed.shape[-1] - shift
        axes = [Axis(f"d{d}", extent) for d, extent in enumerate(extents)]
        read = [Linear(0, {axis: 1} if axis.extent > 1 else {}) for axis in axes]
        out = list(read)
        out[part], read[-1] = out[part] + Linear(shift * depth), read[-1] + Linear(shift)
        free = tuple(axis for d, axis in enumerate(axes) if d != part and axis.extent > 1)
        load = Load(packed, tuple(found.expr() for found in read))
        yield Kernel(like.origins[:1], packed, tuple(out), axes[part], free, load, by_dma=True)
