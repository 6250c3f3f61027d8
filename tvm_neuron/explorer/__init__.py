"""Compiled files in Model Explorer: `model-explorer model.so --extensions=tvm_neuron.explorer`; see docs/reports.md."""

from tvm_neuron.explorer.node_data import save_node_data

__all__ = ["save_node_data"]
