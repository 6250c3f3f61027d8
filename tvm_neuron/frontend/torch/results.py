"""The tensors of what a model gives, whatever it packs them in: a library has nothing but tensors."""

from collections.abc import Iterator
from typing import Any

from tvm_neuron.frontend.torch.need import need_torch


def tensors_of(result: Any) -> tuple[Any, ...]:
    """In the order of torch's pytrees; of an object that these don't know, in that of its attributes."""
    return tuple(_tensors(result, set()))


def _tensors(part: Any, opened: set[int]) -> Iterator[Any]:
    torch = need_torch()
    for leaf in torch.utils._pytree.tree_leaves(part):
        if isinstance(leaf, torch.Tensor):
            yield leaf
        elif hasattr(leaf, "__dict__") and not isinstance(leaf, type | torch.nn.Module) and id(leaf) not in opened:
            opened.add(id(leaf))  # objects may know each other
            yield from _tensors([*vars(leaf).values()], opened)
