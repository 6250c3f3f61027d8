"""The smallest member of each family, by its number of weights."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def smallest(
    names: Iterable[str], family_of: Callable[[str], str], make: Callable[[str], "torch.nn.Module"]
) -> list[tuple[str, str]]:
    """Families in the order of their names, each with the name of its smallest member; of equal ones, the first."""
    members: dict[str, list[str]] = {}
    for name in names:
        members.setdefault(family_of(name), []).append(name)
    return [
        (family, min(each, key=lambda name: (_weights(make, name), name))) for family, each in sorted(members.items())
    ]


def _weights(make: Callable[[str], "torch.nn.Module"], name: str) -> int:
    """How many it has, without memory for them if it can be made so."""
    import torch

    try:
        with torch.device("meta"):
            module = make(name)
    except (RuntimeError, NotImplementedError):  # a constructor looks at values
        module = make(name)
    return sum(parameter.numel() for parameter in module.parameters())
