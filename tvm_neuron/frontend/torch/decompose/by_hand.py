"""Kernels written by hand, as operators of torch: a node of their name in the kernels' domain of ONNX."""

from collections.abc import Callable
from typing import Any

import torch

from tvm_neuron.frontend.by_hand import KERNEL_DOMAIN, KERNELS

NAMESPACE = "tvm_neuron_nki"
"""Of these operators."""


def table() -> dict[Any, Callable[..., Any]]:
    """By operator what stands for it; kernels may also be registered for ONNX alone."""
    space = getattr(torch.ops, NAMESPACE)
    return {getattr(space, name).default: _node(name) for name in KERNELS if hasattr(space, name)}


def _node(name: str) -> Callable[..., Any]:
    def node(*inputs: torch.Tensor) -> Any:
        operands = [(tuple(map(int, each.shape)), str(each.dtype).removeprefix("torch.")) for each in inputs]
        made = KERNELS[name].results(operands)
        found = torch.onnx.ops.symbolic_multi_out(
            f"{KERNEL_DOMAIN}::{name}", inputs, version=1, dtypes=[getattr(torch, dtype) for _, dtype in made],
            shapes=[shape for shape, _ in made],
        )  # fmt: skip
        return found[0] if len(made) == 1 else tuple(found)

    return node
