"""Relay's interface, as TVM 0.18 had it, over Relax: `frontend.from_onnx`, `build`, `graph_executor`.

Importing this module also makes `from tvm import relay` and `from tvm.contrib import graph_executor` resolve here,
and brings back `tvm.nd` and `tvm.device("neuron")`, so that a Relay-era script runs with this one import added.
"""

from tvm_neuron.relay import compatibility, frontend, graph_executor
from tvm_neuron.relay.build_module import build, build_buckets
from tvm_neuron.relay.factory import ExecutorFactory

__all__ = ["ExecutorFactory", "build", "build_buckets", "frontend", "graph_executor"]

compatibility.install()
