"""interlaced: convolutions that compute the rows of an image in turn, every second row each, as one kernel for folds.

A transposed convolution is computed phase by phase, see `passes/polyphase`. Where several rows of its result lie on the
partitions side by side, all phases of rows are one matrix: 2 rows of 16 channels take the array no longer than one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from tvm_neuron.codegen.kernels.row_axes import ROWS, Interlaced, channel_terms, window_of
from tvm_neuron.schedule.expr import Axis, Expr, Index, Load, Num, axes_of, loads, replace_axes, rewrite
from tvm_neuron.schedule.graph import linear_indices
from tvm_neuron.schedule.kernel import ROOT, Contraction, Kernel
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor


def interlaced(kernels: Sequence[Kernel]) -> list[Kernel]:
    """The kernels, those of all phases of an image's rows as one, where the last of them was."""
    groups: dict[object, list[Kernel]] = {}
    for kernel in kernels:
        if (key := _key(kernel)) is not None:
            groups.setdefault(key, []).append(kernel)
    joined = {kernel: one for group in groups.values() if (one := _joined(group)) for kernel in group}
    last = {one: kernel for kernel, one in joined.items()}
    found = []
    for kernel in kernels:
        if kernel not in joined:
            found.append(kernel)
        elif last[joined[kernel]] is kernel:
            found.append(joined[kernel])
    return found


def apart(kernels: Iterable[Kernel]) -> list[Kernel]:
    """The kernels as they were, of those that were joined and not folded."""
    return [
        each
        for kernel in kernels
        for each in (kernel.root.phases if isinstance(kernel.root, Interlaced) else (kernel,))
    ]


def _key(kernel: Kernel) -> object:
    """What the phases of an image's rows have in common; None of a kernel that is none."""
    step = _step(kernel)
    if step is None or not isinstance(kernel.root, Contraction):
        return None
    channels, columns = (kernel.out_maps[d] for d in (1, ROWS + 1))
    across = columns.const, tuple((kernel.free.index(axis), by) for axis, by in columns.terms.items())
    return kernel.out, kernel.root.data, channels.const, kernel.channel.extent, step, across


def _step(kernel: Kernel) -> int | None:
    """From one of its rows to the next, if these are not all that there are."""
    root, maps = kernel.root, kernel.out_maps
    if not isinstance(root, Contraction) or root.side or root.scale:
        return None
    if len(maps) != ROWS + 2 or len(maps[ROWS].terms) != 1:
        return None
    ((row, step),) = maps[ROWS].terms.items()
    window = window_of(root)
    is_plain = maps[1].terms == channel_terms(kernel) and set(maps[ROWS + 1].terms) <= {*kernel.free} - {row}
    return step if step > 1 and is_plain and window is not None and window.row is row else None


def _joined(group: list[Kernel]) -> Kernel | None:
    """The kernel of all rows; None where phases are missing, or do other things than multiply by other weights."""
    phases = sorted(group, key=lambda kernel: kernel.out_maps[ROWS].const)
    first, step = phases[0], _step(phases[0])
    ((old, _),) = first.out_maps[ROWS].terms.items()
    top = first.out_maps[ROWS].const
    row = Axis(old.name, old.extent * len(phases))
    if len(phases) != step or [kernel.out_maps[ROWS].const - top for kernel in phases] != list(range(step)):
        return None
    every = [_with_rows(kernel, first, row, phase, step) for phase, kernel in enumerate(phases)]
    one = every[0]
    if one is None or any(other is None or not _is_alike(one, other) for other in every):
        return None
    assert isinstance(one.root, Contraction)
    parts = {name: getattr(one.root, name) for name in Contraction.__dataclass_fields__}
    return replace(one, root=Interlaced(**parts, phases=tuple(phases)))


def _with_rows(kernel: Kernel, first: Kernel, row: Axis, phase: int, step: int) -> Kernel | None:
    """The kernel with the axes of the first one, and all rows in the place of its own; None if that can't be."""
    root, (own,) = kernel.root, kernel.out_maps[ROWS].terms
    assert isinstance(root, Contraction)
    assert isinstance(first.root, Contraction)
    steps, others = ([axis for axis in each.steps if axis not in each.maps[ROWS].terms] for each in (root, first.root))
    loops, there = (kernel.channel, *kernel.free, *steps), (first.channel, *first.free, *others)
    if [axis.extent for axis in loops] != [axis.extent for axis in there]:
        return None
    to = dict(zip(loops, there, strict=True)) | {own: row}
    by: dict[Axis, Expr] = {axis: Index(other) for axis, other in to.items()}

    def placed(part: Linear) -> Linear | None:
        """A row that the phase reads beside, among all rows."""
        if own not in part.terms:
            return Linear(part.const, {to[axis]: by for axis, by in part.terms.items()})
        if part.terms[own] != step:
            return None
        return Linear(part.const - phase, {to[axis]: 1 if axis is own else by for axis, by in part.terms.items()})

    out_maps = [placed(part) for part in kernel.out_maps]
    reads = {load: [placed(part) for part in linear_indices(load.indices) or ()] for load in kernel.operand_loads()}
    bare = rewrite(kernel.expr, lambda part: Num(0) if isinstance(part, Load) else part)
    if any(True for _ in axes_of(bare)) or None in [*out_maps, *(part for parts in reads.values() for part in parts)]:
        return None

    def leaf(found: Num | Index | Load) -> Expr:
        if not isinstance(found, Load) or found is ROOT:
            return found  # in an index, which is rewritten as a whole
        if found not in reads:
            return Load(_known(found.tensor, first), tuple(replace_axes(index, by) for index in found.indices))
        return Load(found.tensor, tuple(part.index() for part in reads[found] if part is not None))

    maps = [Linear(part.const, {to.get(axis, axis): by for axis, by in part.terms.items()}) for part in root.maps]
    return replace(
        kernel,
        origins=first.origins,
        out_maps=tuple(part for part in out_maps if part is not None),
        channel=first.channel,
        free=tuple(to[axis] for axis in kernel.free),
        expr=rewrite(kernel.expr, leaf),
        root=replace(root, maps=tuple(maps)),
    )


def _known(constant: Tensor, kernel: Kernel) -> Tensor:
    """The one of the same values that the kernel has, which each phase may have brought."""
    for other in dict.fromkeys(load.tensor for load in loads(kernel.expr)):
        if other.value is not None and constant.value is not None and np.array_equal(other.value, constant.value):
            return other
    return constant


def _is_alike(one: Kernel, other: Kernel) -> bool:
    """Whether both write the same, and read the same but for rows and the steps along them."""
    here, there = one.root, other.root
    assert isinstance(here, Contraction)
    assert isinstance(there, Contraction)
    same = [here.maps[d] == there.maps[d] for d in range(len(here.maps)) if d != ROWS]
    return all(same) and (one.out_maps, one.expr) == (other.out_maps, other.expr) and here.dtype == there.dtype
