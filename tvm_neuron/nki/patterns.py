"""boxes: views of one shape as tiles of instructions, unrolled where an instruction's access patterns can't say it."""

from collections.abc import Iterator, Sequence

from tvm_neuron.isa import DramTile, Tile, affine
from tvm_neuron.isa.dtypes import size_bytes
from tvm_neuron.isa.tile import MAX_DRAM_DIMS, MAX_FREE_DIMS
from tvm_neuron.nki.source import wrong
from tvm_neuron.nki.view import Axis, View

AnyTile = Tile | DramTile


def boxes(views: Sequence[View], kept: int = 0) -> Iterator[list[AnyTile]]:
    """Tiles of `views`, which have one shape, in step; the last `kept` axes stay axes of their own, at the end.

    Raises:
        KernelError: partitions in steps, or on an axis other than the first.
    """
    on_chip = [view for view in views if view.tensor.memory != "hbm"]
    if not any(view.axes and view.axes[0][0][1] for view in on_chip) and (not views[0].axes or views[0].shape[0] != 1):
        views = [view.like(view.start, [((0, 0, 0), 1), *view.axes]) for view in views]
    for view in views:
        if view.tensor.memory != "hbm":
            _check_partitions(view)
    yield from _boxes(views, kept)


def tile_on_chip(view: View, kept: int = 0) -> Tile:
    """The one tile that a view on chip is, whose last `kept` axes stay axes of their own.

    Raises:
        KernelError: it takes several.
    """
    return tiles_on_chip(view, kept=kept)[0]


def tiles_on_chip(*views: View, kept: int = 0) -> list[Tile]:
    """The same of views with the same free axes, which stay the same.

    Raises:
        KernelError: one takes several.
    """
    found = [[tile for tile in tiles if isinstance(tile, Tile)] for tiles in boxes(views, kept)]
    if len(found) != 1 or len(found[0]) != len(views):
        raise wrong(
            f"{' and '.join(map(str, views))} is no one access pattern on chip: at most {MAX_FREE_DIMS} free axes, "
            "steps not negative"
        )
    return found[0]


def _boxes(views: Sequence[View], kept: int) -> Iterator[list[AnyTile]]:
    shape = views[0].shape
    for axis in range(len(shape) - 1, 0, -1):
        if shape[axis] > 1 and any(view.axes[axis][0][2] < 0 for view in views):
            yield from _unrolled(views, axis, kept)
            return
    joined = _joined(views, kept)
    most = MAX_FREE_DIMS if any(view.tensor.memory != "hbm" for view in views) else MAX_DRAM_DIMS - 1
    if len(joined[0]) > most:
        small = min(range(1, len(shape) - kept), key=lambda axis: shape[axis] if shape[axis] > 1 else 1 << 30)
        yield from _unrolled(views, small, kept)
        return
    yield [_tile(view, axes) for view, axes in zip(views, joined, strict=True)]


def _unrolled(views: Sequence[View], axis: int, kept: int) -> Iterator[list[AnyTile]]:
    for at in range(views[0].shape[axis]):
        yield from _boxes([view.narrow({axis - view.ndim: (at, at + 1)}) for view in views], kept)


def _joined(views: Sequence[View], kept: int) -> list[list[tuple[int, int]]]:
    """(step, count) of the free axes of each view: those of size 1 left out, neighbours joined where all views can."""
    found: list[list[tuple[int, int]]] = [[] for _ in views]
    rank = views[0].ndim
    fixed = False
    for axis in range(1, rank):
        count = views[0].shape[axis]
        own = axis >= rank - kept
        if count == 1 and not own:
            continue
        steps = [view.axes[axis][0][2] for view in views]
        last = [dims[-1] if dims else None for dims in found]
        fits = (
            not fixed
            and not own
            and all(dim is not None and dim[0] == step * count for dim, step in zip(last, steps, strict=True))
        )
        for dims, step in zip(found, steps, strict=True):
            if fits:
                dims[-1] = step, dims[-1][1] * count
            else:
                dims.append((step, count))
        fixed = own
    return [dims or [(1, 1)] for dims in found]


def _check_partitions(view: View) -> None:
    if any(step[1] and count > 1 for step, count in view.axes[1:]):
        raise wrong(f"{view}: partitions lie on an axis other than the first; an instruction takes them on the first")
    (block, step, elem), count = view.axes[0]
    if count > 1 and (step != 1 or block or elem):
        what = "one partition, repeated" if not step and not elem else f"partitions in steps of {step}"
        raise wrong(f"{view}: {what}; an instruction takes partitions that lie one after the other")


def _tile(view: View, dims: Sequence[tuple[int, int]]) -> AnyTile:
    _, partition, elem = view.start
    tensor = view.tensor
    if tensor.memory == "hbm":
        first = _dram_step(view.axes[0]), view.shape[0]
        return DramTile(tensor.number, tensor.dtype, affine(elem), (first, *dims))
    return Tile(
        tensor.memory,
        tensor.dtype,
        affine(partition),
        view.shape[0],
        affine(elem * size_bytes(tensor.dtype)),
        tuple(dims),
    )


def _dram_step(axis: Axis) -> int:
    return axis[0][2] if axis[1] > 1 else 0 if axis[0][2] < 0 else axis[0][2]
