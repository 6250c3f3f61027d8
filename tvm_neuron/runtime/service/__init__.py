"""Serves compiled models to many threads: cores and their groups, loaded models, bounded queues."""

from tvm_neuron.runtime.service.cores import Group, make_groups, most_requests, visible_cores
from tvm_neuron.runtime.service.model import LoadedModel, State
from tvm_neuron.runtime.service.service import Service

__all__ = ["Group", "LoadedModel", "Service", "State", "make_groups", "most_requests", "visible_cores"]
