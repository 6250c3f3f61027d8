"""Operators that only choose elements, by indices known at import: they stay one Relax call on a table of positions.

TVM's importer leaves arithmetic on the indices in the module, or a kernel of the model's own, neither of which the
partition can look into. Indices known at run time only stay as they are: the NeuronCore and the CPU parts (see
`codegen.cpu.positions`) count negative ones from the end and refuse those outside.
"""

import numpy as np
from numpy.typing import NDArray
from tvm import relax

from tvm_neuron.frontend.decompose.cumulative import LONGEST, summed
from tvm_neuron.frontend.decompose.shapes import is_float
from tvm_neuron.frontend.onnx.converters.converter import Converter, Node
from tvm_neuron.frontend.positions import Positions, counted


def positions_of(node: Node, operand: int, limits: NDArray[np.int64]) -> Positions | None:
    """A constant operand's indices, negative ones counted from the end; `limits` broadcast against it.

    Raises:
        ModelError: an index lies outside of its dimension.
    """
    given = node.constant(operand)
    return None if given is None else counted(given, limits)


def axis_of(node: Node) -> int:
    """The dimension along which the node chooses."""
    return int(node.attrs.get("axis", 0)) % len(node.shape())


def taken(node: Node, data: relax.Expr, positions: Positions, axis: int) -> relax.Expr:
    """The slices of the data at positions along an axis."""
    return node.emit(relax.op.take(data, relax.const(positions, "int64"), axis, mode="clip"))


def _gather(node: Node) -> relax.Expr | None:
    """Slices at the indices along an axis."""
    if not node.is_static():
        return None
    axis = axis_of(node)
    positions = positions_of(node, 1, np.array(node.shape()[axis]))
    if positions is None:
        return relax.op.take(node.inputs[0], node.inputs[1], axis, mode="fast") if node.is_static(1) else None
    return taken(node, node.inputs[0], positions, axis)


def _gather_elements(node: Node) -> relax.Expr | None:
    """Elements at the indices along an axis, each index for one element."""
    if not node.is_static():
        return None
    axis = axis_of(node)
    positions = positions_of(node, 1, np.array(node.shape()[axis]))
    if positions is None:
        return relax.op.gather_elements(node.inputs[0], node.inputs[1], axis) if node.is_static(1) else None
    return relax.op.gather_elements(node.inputs[0], relax.const(positions, "int64"), axis)


def _gather_nd(node: Node) -> relax.Expr | None:
    """Slices at tuples of indices, as one gather along the dimensions that they choose from, joined."""
    if not node.is_static():
        return None
    if node.constant(1) is None:
        batch = int(node.attrs.get("batch_dims", 0))
        return relax.op.gather_nd(node.inputs[0], node.inputs[1], batch) if node.is_static(1) else None
    found = None if node.attrs.get("batch_dims", 0) else flat_rows(node)
    if found is None:
        return None
    rows, rank = found
    shape = node.shape()
    joined = node.emit(relax.op.reshape(node.inputs[0], [int(np.prod(shape[:rank])), *shape[rank:]]))
    return taken(node, joined, rows, 0)


def flat_rows(node: Node) -> tuple[Positions, int] | None:
    """GatherND's and ScatterND's tuples of indices as positions in the joined dimensions, and how many those are."""
    given = node.constant(1)
    if given is None or given.ndim == 0:
        return None
    rank = given.shape[-1]
    chosen = np.array(node.shape()[:rank])
    positions = positions_of(node, 1, chosen)
    assert positions is not None
    steps = np.append(np.cumprod(chosen[::-1])[::-1][1:], 1)
    return np.asarray((positions * steps).sum(-1)), rank


def pad_by_position(node: Node, before: list[int], after: list[int], mode: str) -> relax.Expr | None:
    """Padding with what lies inside: mirrored ("reflect"), repeated ("edge") or from the other end ("wrap")."""
    chosen = node.constant(3)
    if not node.is_static() or (chosen is None and node.given(3) is not None):
        return None
    shape = node.shape()
    axes = range(len(shape)) if chosen is None else [int(axis) % len(shape) for axis in chosen]
    data = node.inputs[0]
    for low, high, axis in zip(before, after, axes, strict=True):
        if low or high:
            positions: Positions = np.pad(np.arange(shape[axis]), (low, high), mode)  # type: ignore[call-overload]
            data = taken(node, data, positions, axis)
    return data


def _reverse_sequence(node: Node) -> relax.Expr | None:
    """The first so many steps of each sequence backwards."""
    time, batch = int(node.attrs.get("time_axis", 0)), int(node.attrs.get("batch_axis", 1))
    if not node.is_static():
        return None
    lengths = node.emit(relax.op.astype(node.inputs[1], "int64"))
    return relax.op.reverse_sequence(node.inputs[0], lengths, seq_axis=time, batch_axis=batch)


def _cumsum(node: Node) -> relax.Expr | None:
    """Sums from the start (or, reverse, the end) up to each element, which `exclusive` leaves out."""
    given = node.constant(1)
    if given is None or not node.is_static():
        return None
    axis = int(given.reshape(())) % len(node.shape())
    is_reverse, is_exclusive = (bool(node.attrs.get(name, 0)) for name in ("reverse", "exclusive"))
    if is_reverse and is_float(node.inputs[0]) and node.shape()[axis] <= LONGEST:
        return summed(node.inputs[0], axis, is_exclusive, True, node.emit)
    data = node.emit(relax.op.flip(node.inputs[0], axis)) if is_reverse else node.inputs[0]
    sums = node.emit(relax.op.cumsum(data, axis, exclusive=is_exclusive))
    return relax.op.flip(sums, axis) if is_reverse else sums


CONVERTERS: dict[str, Converter] = {
    "CumSum": _cumsum,
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "ReverseSequence": _reverse_sequence,
}
