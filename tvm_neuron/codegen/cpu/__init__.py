"""What stays on the CPU: kernels that are scheduled, vectorised and parallel."""

from tvm_neuron.codegen.cpu.lone_kernels import warn_of_lone_kernels
from tvm_neuron.codegen.cpu.lower import lower

__all__ = ["lower", "warn_of_lone_kernels"]
