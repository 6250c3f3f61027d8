"""by_phases: convolutions at the end of a chain of folds, as many times as rows lie on the partitions side by side.

A folded tensor has several rows as one (see `row_folds`), and a convolution steps from one of these to the next. Where
its result is not folded, it is computed in so many parts: of every fourth row, say, then of the rows below these. An
output is stored from there as a whole.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tvm_neuron.codegen.kernels.folds import Fold
from tvm_neuron.codegen.kernels.operands import elementwise_copy
from tvm_neuron.codegen.kernels.row_axes import ROWS, row_of, window_of
from tvm_neuron.schedule.expr import Axis, Load, Num, replace_axes
from tvm_neuron.schedule.kernel import Contraction, Kernel
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.uses import writers_of


def by_phases(
    kernels: Sequence[Kernel], folds: Mapping[Tensor, Fold], partition_of: Mapping[Tensor, int]
) -> tuple[list[Kernel], dict[Tensor, int]]:
    """The kernels, in parts where one reads a tensor that may be folded and writes one that may not.

    And the partition dimension of what outputs are stored from.
    """
    writers = writers_of(kernels)
    found: list[Kernel] = []
    dims: dict[Tensor, int] = {}
    for kernel in kernels:
        is_result = kernel.out.kind == "output" and len(writers[kernel.out]) == 1
        inside = _inside(kernel) if is_result else kernel
        step, row = _step(inside, folds), row_of(inside)
        if step == 1 or row is None or inside.out.kind != "temp":
            found.append(kernel)
            continue
        found += (_phase(inside, row, phase, step) for phase in range(step))
        if is_result:
            dims[inside.out] = partition_of[kernel.out]
            found.append(_stored(kernel, inside.out, partition_of[kernel.out]))
    return found, dims


def _inside(kernel: Kernel) -> Kernel:
    """The kernel writing an image in the place of an output, which may be one without columns."""
    missing = ROWS + 2 - len(kernel.out.shape)
    shape = (*kernel.out.shape, *(1 for _ in range(missing)))
    whole = replace(kernel.out, name=f"{kernel.out.name}.rows", kind="temp", shape=shape)
    return replace(kernel, out=whole, out_maps=(*kernel.out_maps, *(Linear(0) for _ in range(missing))))


def _stored(kernel: Kernel, source: Tensor, dim: int) -> Kernel:
    """The move from there to what the kernel wrote."""
    copy = elementwise_copy(kernel, kernel.out, kernel.out, dim)
    assert isinstance(copy.expr, Load)
    read = (*copy.expr.indices, *(Num(0) for _ in source.shape[len(copy.expr.indices) :]))
    return replace(copy, expr=Load(source, read), by_dma=True)


def _step(kernel: Kernel, folds: Mapping[Tensor, Fold]) -> int:
    """From one row of a part to the next; 1 where the kernel stays as it is."""
    root, row = kernel.root, row_of(kernel)
    fold = folds.get(root.data) if isinstance(root, Contraction) else None
    window = window_of(root) if isinstance(root, Contraction) else None
    if fold is None or row is None or window is None or window.row is not row or kernel.out in folds:
        return 1
    return 1 if window.per > 1 or window.stride % fold.by == 0 or row.extent % fold.by else fold.by


def _phase(kernel: Kernel, row: Axis, phase: int, step: int) -> Kernel:
    """Of every `step` rows the one at `phase`."""
    assert isinstance(kernel.root, Contraction)
    part = Axis(row.name, row.extent // step)
    by = Linear(phase, {part: step})
    maps, out_maps = (tuple(m.replaced(row, by) for m in found) for found in (kernel.root.maps, kernel.out_maps))
    free = tuple(part if axis is row else axis for axis in kernel.free)
    expr = replace_axes(kernel.expr, {row: by.expr()})
    return replace(kernel, out_maps=out_maps, free=free, expr=expr, root=replace(kernel.root, maps=maps))
