"""What the elements of a tile in PSUM hold, which decides whether the next product overwrites them or adds to them."""

from itertools import pairwise

import numpy as np

from tvm_neuron.nki.source import wrong
from tvm_neuron.nki.view import Axis, Vector, View

NOTHING, SUMS, ZEROS, OTHER = range(4)
_Key = tuple[Vector, tuple[Axis, ...]]


class Contents:
    """The kinds of all elements; as long as all writes went to one and the same place, as the kind of that alone."""

    __slots__ = ("_key", "_kind", "_kinds", "_shape")

    def __init__(self, partitions: int, elems: int) -> None:
        self._shape = partitions, elems
        self._key: _Key | None = None
        self._kind = NOTHING
        self._kinds: np.ndarray | None = None

    def of(self, view: View) -> set[int]:
        """The kinds of what the view shows."""
        key = self._place(view)
        if self._kinds is None and self._key in (None, key):
            return {self._kind}
        return set(np.flatnonzero(np.bincount(self._window(key).ravel())).tolist())

    def put(self, view: View, kind: int) -> None:
        """All that the view shows becomes of a kind."""
        key = self._place(view)
        if self._kinds is None and self._key in (None, key):
            self._key, self._kind = key, kind
        else:
            self._window(key)[...] = kind

    def empty_columns(self) -> list[tuple[int, int]]:
        """From where to where nothing was written, in any partition."""
        whole = self._window(((0, 0, 0), _axes(self._shape)))
        edges = np.flatnonzero(np.diff((whole == NOTHING).all(0), prepend=False, append=False)).tolist()
        return [pair for at, pair in enumerate(pairwise(edges)) if at % 2 == 0]

    def _place(self, view: View) -> _Key:
        if view.tensor.elems != self._shape[1]:  # seen as elements of another dtype: all of the tile
            return (0, 0, 0), _axes(self._shape)
        return (0, *view.start[1:]), tuple(axis for axis in view.axes if axis[1] > 1)

    def _window(self, key: _Key) -> np.ndarray:
        if self._kinds is None:
            self._kinds = np.full(self._shape, NOTHING, np.uint8)
            if self._key is not None:
                self._window(self._key)[...] = self._kind
        (_, partition, elem), axes = key
        steps = [step[1] * self._shape[1] + step[2] for step, _ in axes]
        return np.lib.stride_tricks.as_strided(self._kinds[partition:, elem:], [count for _, count in axes], steps)


def _axes(shape: tuple[int, int]) -> tuple[Axis, ...]:
    return ((0, 1, 0), shape[0]), ((0, 0, 1), shape[1])


def contents_of(view: View) -> Contents:
    """What the tile that a view in PSUM shows a part of holds."""
    tensor = view.tensor
    found: Contents = tensor.contents.setdefault(view.start[0], Contents(tensor.partitions, tensor.elems))
    return found


def is_added(psum: View, must: bool = False) -> bool:
    """Whether a product that is added to a view in PSUM is its second one at least: the first one overwrites.

    Raises:
        KernelError: the core has no meaning for it; with `must` also where there is nothing to add to.
    """
    kinds = contents_of(psum).of(psum)
    if OTHER in kinds:
        raise wrong(
            f"a product is added to {psum}, which holds something other than sums of products; that is undefined on "
            "the core: overwrite it (accumulate=False; Beta 1: =), and add the other afterwards (tensor_tensor)"
        )
    if SUMS in kinds and len(kinds) > 1:
        raise wrong(
            f"a product is added to {psum}, of which a part holds sums and another does not: write all of it first, or "
            "each part by a product of its own"
        )
    if must and NOTHING in kinds:
        raise wrong(f"a product is added (accumulate=True) to {psum}, to which nothing has been written")
    return SUMS in kinds
