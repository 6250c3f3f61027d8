"""of_numbers_too: what is done along a dimension, done to tensors without one, which torch takes for one element."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def of_numbers_too(decomposition: Callable[..., Any]) -> Callable[..., Any]:
    """The same, with a dimension for tensors that have none, and without it in the results."""

    def decompose(x: Tensor, *args: Any, **kwargs: Any) -> Any:
        if x.dim():
            return decomposition(x, *args, **kwargs)
        found = decomposition(x.reshape(1), *args, **kwargs)
        return torch.utils._pytree.tree_map(lambda each: each.reshape(()), found)

    return decompose
