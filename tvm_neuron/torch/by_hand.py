"""operator_of: a kernel written by hand as an operator of torch, in models that torch runs and in compiled ones."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from tvm_neuron import nki
from tvm_neuron.errors import KernelError
from tvm_neuron.frontend.by_hand import KERNELS
from tvm_neuron.frontend.torch.decompose.by_hand import NAMESPACE
from tvm_neuron.nki.models import Instead

_LIBRARY = torch.library.Library(NAMESPACE, "FRAGMENT")


def operator_of(
    kernel: nki.Kernel, name: str = "", results: int = 1, instead_of: Instead | None = None
) -> Callable[..., Any]:
    """The operator `torch.ops.tvm_neuron_nki.<name>`, which models call with tensors; by default named as the kernel.

    It takes as many tensors as the kernel's function has parameters, and gives `results` of them. Run by torch, the
    kernel runs on the hardware model; in a compiled model it is a program on the core. `instead_of` as of `nki.call`.

    Raises:
        KernelError: there is an operator of that name, or the name is none.
    """
    name = name or kernel.name
    if not name.isidentifier() or name in KERNELS:
        raise KernelError(f"an operator '{name}': it takes the name of a Python variable that no other kernel has")
    names = list(inspect.signature(kernel.function).parameters)
    gives = "Tensor" if results == 1 else f"({', '.join(['Tensor'] * results)})"
    nki.register(name, kernel, instead_of)
    _LIBRARY.define(f"{name}({', '.join(f'Tensor {each}' for each in names)}) -> {gives}")

    def run(*tensors: torch.Tensor) -> Any:
        return _as_given(kernel(*(tensor.detach().contiguous().numpy() for tensor in tensors)), results, name)

    def shapes(*tensors: torch.Tensor) -> Any:
        operands = [(tuple(map(int, tensor.shape)), _dtype(tensor)) for tensor in tensors]
        made = [torch.empty(shape, dtype=getattr(torch, dtype)) for shape, dtype in KERNELS[name].results(operands)]
        return _counted(made, results, name)

    _LIBRARY.impl(name, run, "CPU")
    torch.library.register_fake(f"{NAMESPACE}::{name}", shapes, lib=_LIBRARY)
    found: Callable[..., Any] = getattr(getattr(torch.ops, NAMESPACE), name)
    return found


def _as_given(found: Any, results: int, name: str) -> Any:
    arrays = found if isinstance(found, tuple | list) else (found,)
    return _counted([torch.from_numpy(np.ascontiguousarray(each)) for each in arrays], results, name)


def _counted(tensors: Sequence[torch.Tensor], results: int, name: str) -> Any:
    if len(tensors) != results:
        raise KernelError(f"kernel '{name}' returns {len(tensors)} tensors; its operator was said to give {results}")
    return tensors[0] if results == 1 else tuple(tensors)


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
