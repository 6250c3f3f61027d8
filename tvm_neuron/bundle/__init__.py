"""The bundle of an internal error: what a compile was asked for, and the model, as data in one file."""

from tvm_neuron.bundle.io_config import IoConfig
from tvm_neuron.bundle.request import Request

__all__ = ["IoConfig", "Request"]
