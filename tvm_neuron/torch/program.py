"""A graph of torch, compiled for the shapes of example arguments; called as the graph is."""

from collections.abc import Sequence
from typing import Any

import torch
import tvm

from tvm_neuron import runtime
from tvm_neuron.compile_model import compile_model
from tvm_neuron.profile.report import Report
from tvm_neuron.torch.operator import run_on


class Program:
    """Gives the tuple of the graph's tensors. Raises ModelError when the graph can't be imported."""

    def __init__(self, graph: torch.fx.GraphModule, examples: Sequence[Any], target: Any) -> None:
        library = compile_model(graph, tuple(examples), target)
        self.report: Report = runtime.report(library)
        self._executor = library["default"](tvm.cpu())

    def __call__(self, *args: Any) -> tuple[torch.Tensor, ...]:
        """What the graph gives for these arguments, of which it takes the tensors."""
        return tuple(run_on(self._executor, [arg for arg in args if isinstance(arg, torch.Tensor)]))
