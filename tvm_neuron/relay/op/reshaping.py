"""reshaped: the shape that Relay's `reshape` asks for with its special numbers."""

from collections.abc import Sequence
from math import prod
from typing import Any


def reshaped(shape: list[Any], wanted: Sequence[int] | int, allowzero: bool) -> list[Any]:
    """`wanted` as plain dimensions, one of them possibly -1.

    0 copies the dimension (unless `allowzero`), -1 is what is left, -2 copies all that remain, -3 is the product of the
    next two, -4 splits one into the two numbers that follow. Raises ValueError: they don't fit the shape.
    """
    out: list[Any] = []
    numbers = [wanted] if isinstance(wanted, int) else list(wanted)
    at, index = 0, 0
    while index < len(numbers):
        number = numbers[index]
        needs = {0: not allowzero, -3: 2, -4: 1}.get(number, 0)
        if (needs and at + needs > len(shape)) or (number == -4 and index + 2 >= len(numbers)):
            raise ValueError(f"newshape {tuple(numbers)} does not fit the shape {[str(dim) for dim in shape]}")
        if number == 0 and not allowzero:
            out.append(shape[at])
            at += 1
        elif number == -2:
            out += shape[at:]
            at = len(shape)
        elif number == -3:
            out.append(shape[at] * shape[at + 1])
            at += 2
        elif number == -4:
            out += _split(shape[at], numbers[index + 1 : index + 3])
            at, index = at + 1, index + 2
        else:
            out.append(number)
            at += 1
        index += 1
    return _inferred(shape, out)


def _split(dim: Any, parts: Sequence[int]) -> list[Any]:
    known = next((part for part in parts if part != -1), None)
    return [dim // known if part == -1 and known is not None else part for part in parts]


def _inferred(shape: list[Any], out: list[Any]) -> list[Any]:
    """-1 as a number, where all others are numbers."""
    plain = [int(dim) if hasattr(dim, "__int__") or hasattr(dim, "value") else None for dim in shape]
    if any(dim is None for dim in plain):
        return out
    total, rest = prod(plain), prod(int(dim) for dim in out if dim != -1)  # type: ignore[arg-type]
    if (rest == 0 or total % rest) if -1 in out else rest != total:
        raise ValueError(f"{total} elements of the shape {plain} can't be laid out as {[str(dim) for dim in out]}")
    return out
