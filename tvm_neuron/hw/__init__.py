"""The accelerator as numbers: one frozen description, the named chips, and a loader for the user's own."""

from tvm_neuron.hw.device import Device
from tvm_neuron.hw.instance import Instance, check_instance, instance_names, is_in_instance, load_instance
from tvm_neuron.hw.load import CHIPS, load_device

__all__ = [
    "CHIPS", "Device", "Instance", "check_instance", "instance_names", "is_in_instance", "load_device", "load_instance",
]  # fmt: skip
