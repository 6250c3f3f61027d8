"""NeuronCores from inside PyTorch: `trace`, `analyze`, and the backend "neuron" of `torch.compile`.

A traced model that was saved by `torch.jit.save` runs in a process that has imported this module.
"""

from tvm_neuron.frontend.torch import need_torch

need_torch()

from tvm_neuron.torch import operator  # noqa: E402 - the sentence about a missing torch comes first
from tvm_neuron.torch.analyze import Analysis, analyze  # noqa: E402
from tvm_neuron.torch.backend import neuron  # noqa: E402
from tvm_neuron.torch.by_hand import operator_of  # noqa: E402
from tvm_neuron.torch.graphs import GraphReport, graphs  # noqa: E402
from tvm_neuron.torch.trace import trace  # noqa: E402

__all__ = ["Analysis", "GraphReport", "analyze", "graphs", "neuron", "operator_of", "trace"]

operator.register()
