"""nki: kernels written by hand, in the public kernel interface, traced into programs and run on the timed model.

After `import tvm_neuron.nki`, what kernels import (`neuronxcc.nki`, `nki`) resolves to it where nothing else has those
names. A kernel is Python code of the user's, run with the user's rights.
"""

from tvm_neuron.nki import isa, language
from tvm_neuron.nki.kernel import Kernel, Traced, jit, watch
from tvm_neuron.nki.launch import baremetal, benchmark, profile, save, simulate, simulate_kernel, trace
from tvm_neuron.nki.models import call, register
from tvm_neuron.nki.modules import install
from tvm_neuron.nki.tirx import from_tirx

install()

__all__ = [
    "Kernel", "Traced", "baremetal", "benchmark", "call", "from_tirx", "isa", "jit", "language", "profile", "register",
    "save", "simulate", "simulate_kernel", "trace", "watch",
]  # fmt: skip
