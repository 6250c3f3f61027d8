"""`trace`: a model of PyTorch in, a ScriptModule out that runs on the hardware model."""

from collections.abc import Mapping
from typing import Any

import torch
from torch.utils import _pytree as pytree

from tvm_neuron.build import BuildOptions
from tvm_neuron.compile_model import compile_model
from tvm_neuron.frontend.torch.capture import Arguments
from tvm_neuron.frontend.torch.results import tensors_of
from tvm_neuron.torch.operator import as_tensor


class Compiled(torch.nn.Module):
    """Calls a library; `library` is a buffer, so that it is saved with the module."""

    def __init__(self, library: torch.Tensor, digest: str, result: pytree.TreeSpec) -> None:
        super().__init__()
        self.register_buffer("library", library)
        self.digest = digest
        self.result = result

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The results in the structure that the model gives them."""
        tensors = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        found = torch.ops.tvm_neuron.run(tensors, self.library, self.digest)
        return pytree.tree_unflatten([found[index] for index in range(self.result.num_leaves)], self.result)


def trace(
    model: torch.nn.Module, example_inputs: Any, target: Any = "neuron", *, options: BuildOptions | None = None
) -> torch.jit.ScriptModule:
    """Compile `model` for the shapes of `example_inputs` (a tensor, a tuple of arguments, a dictionary of named ones).

    What comes out is called as `model` is, saved by `torch.jit.save`, and loaded where `tvm_neuron.torch` is imported.
    A result that is a tensor, a tuple or list of tensors, or a dictionary of them stays so; of any other structure, its
    tensors come as one tuple.

    Raises what `tvm_neuron.compile` raises.
    """
    arguments = Arguments.of(example_inputs)
    named = dict(arguments.named or {})
    library, digest = as_tensor(compile_model(model, example_inputs, target, options=options))
    with torch.no_grad():
        result = pytree.tree_structure(_plain(model(*arguments.positional, **named)))
    compiled = Compiled(library, digest, result).eval()
    given = {"example_kwarg_inputs": named} if named else {"example_inputs": arguments.positional}
    return torch.jit.trace(compiled, strict=False, check_trace=False, **given)


def _plain(result: Any) -> Any:
    """The result as a script may return it."""
    if isinstance(result, torch.Tensor):
        return result
    if isinstance(result, Mapping) and all(isinstance(part, torch.Tensor) for part in result.values()):
        return dict(result)
    if isinstance(result, list | tuple) and all(isinstance(part, torch.Tensor) for part in result):
        return list(result) if isinstance(result, list) else tuple(result)
    return tensors_of(result)
