"""relayout: a tensor from one layout to another; layouts are strings such as `NCHW`, `HWIO`, `NCHW4c`."""

from collections.abc import Mapping, Sequence
from typing import Any

import tvm

from tvm_neuron.relay.op.declare import R


def relayout(data: Any, source: str, target: str) -> Any:
    """The same elements with their dimensions as `target` orders and blocks them.

    Raises ValueError: the tensor has more or fewer dimensions, the layouts name different ones, or a block does not
    divide its dimension.
    """
    before, after = dimensions(source), dimensions(target)
    if len(before) != int(data.ty.ndim):
        raise ValueError(f"a tensor of {data.ty.ndim} dimensions has no layout {source}")
    if source == target:
        return data
    whole = [letter for letter in before if letter.isupper()]
    if set(whole) != {letter for letter in after if letter.isupper()}:
        raise ValueError(f"a tensor of {data.ty.ndim} dimensions can't go from layout {source} to {target}")
    data, sizes = _joined(data, list(before), whole)
    return _cut(data, dict(zip(whole, sizes, strict=True)), after, target)


def _joined(data: Any, letters: list[str], whole: list[str]) -> tuple[Any, list[Any]]:
    """Without blocks, in the order of `whole`, and its sizes."""
    dims = (int(dim) if isinstance(dim, tvm.tirx.IntImm) else dim for dim in data.ty.shape)
    size = dict(zip(letters, dims, strict=True))
    if len(whole) == len(letters):
        return data, list(size.values())
    order = [part for letter in whole for part in (letter, letter.lower()) if part in size]
    sizes = [size[letter] * size.get(letter.lower(), 1) for letter in whole]
    return R.reshape(R.permute_dims(data, [letters.index(part) for part in order]), sizes), sizes


def _cut(data: Any, sizes: dict[str, Any], after: dict[str, int], target: str) -> Any:
    """With the blocks of `after`, in its order."""
    names: list[str] = []
    shape: list[Any] = []
    for letter, size in sizes.items():
        block = after.get(letter.lower(), 1)
        if block > 1 and size % block:
            raise ValueError(f"{size} elements along {letter} can't be cut into the blocks of {block} of {target}")
        names.append(letter)
        shape.append(size // block if block > 1 else size)
        if letter.lower() in after:
            names.append(letter.lower())
            shape.append(block)
    cut = R.reshape(data, shape) if len(shape) > len(sizes) else data
    return R.permute_dims(cut, [names.index(letter) for letter in after])


def blocked(sizes: Mapping[str, Any], layout: str) -> list[Any]:
    """The shape in `layout` of a tensor with these sizes along its whole dimensions."""
    letters = dimensions(layout)
    return [
        block if letter.islower() else sizes[letter] // max(letters.get(letter.lower(), 1), 1)
        for letter, block in letters.items()
    ]


def joined_size(shape: Sequence[Any], layout: str, letter: str) -> int:
    """The size along a dimension, its blocks joined, of a tensor of this shape in `layout`."""
    sizes = dict(zip(dimensions(layout), shape, strict=True))
    return int(sizes[letter]) * int(sizes.get(letter.lower(), 1))


def dimensions(layout: str) -> dict[str, int]:
    """The dimensions in order, each with the size that the layout itself gives it (0 for none)."""
    found: dict[str, int] = {}
    digits = ""
    for letter in layout:
        if letter.isdigit():
            digits += letter
        else:
            found[letter] = int(digits or 0)
            digits = ""
    return found
