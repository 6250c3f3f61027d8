"""The smallest member of each family, by its number of weights."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

_FILLS = ("uniform_", "normal_", "erfinv_", "mul_", "add_", "div_", "sub_", "clamp_", "fill_", "zero_", "copy_")
"""Methods that only change a tensor's values."""


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
        with torch.device("meta"), _values_left_out():
            module = make(name)
    except (RuntimeError, NotImplementedError):  # a constructor looks at values
        module = make(name)
    return sum(parameter.numel() for parameter in module.parameters())


def _values_left_out() -> "torch.overrides.TorchFunctionMode":
    """While it is entered, what fills tensors without memory is not carried out, which takes most of the time."""
    import torch
    from torch.overrides import TorchFunctionMode

    class Left(TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
        ) -> Any:
            filled = [*args[:1], *(kwargs or {}).values()]  # torch.nn.init hands its tensor over by name
            if getattr(func, "__name__", "") in _FILLS and isinstance(filled[0], torch.Tensor) and filled[0].is_meta:
                return filled[0]
            return func(*args, **(kwargs or {}))

    return Left()
