"""What stays on the CPU: kernels that are scheduled, vectorised and parallel."""

from tvm_neuron.codegen.cpu.lower import lower
from tvm_neuron.codegen.cpu.rename import with_prefix

__all__ = ["lower", "with_prefix"]
