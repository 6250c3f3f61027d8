"""Runs what was compiled: loads libraries and NEFFs, moves tensors, drives the modelled cores.

Importing it is enough to load an exported library in a new process; it imports nothing of the compiler.
"""

import tvm_ffi

from tvm_neuron.runtime.contents import manifest, neffs
from tvm_neuron.runtime.crossing import register_errors
from tvm_neuron.runtime.drawing import drawn, seed
from tvm_neuron.runtime.executor import Executor, executors
from tvm_neuron.runtime.host import has_level, use_all_cores
from tvm_neuron.runtime.kernels import products
from tvm_neuron.runtime.library import FACTORY_ENTRY, MANIFEST_ENTRY, load_library, make_module
from tvm_neuron.runtime.program import load
from tvm_neuron.runtime.ranges import checked_divisors, checked_range, checked_regions, checked_steps
from tvm_neuron.runtime.report import parts, report, report_in_turn
from tvm_neuron.runtime.version import VERSION

__all__ = [
    "FACTORY_ENTRY",
    "MANIFEST_ENTRY",
    "VERSION",
    "Executor",
    "make_module",
    "manifest",
    "neffs",
    "parts",
    "report",
    "report_in_turn",
    "seed",
]

use_all_cores()
load_library()
register_errors()
_FUNCTIONS = {
    "load": load,
    "factory": executors,
    "has_level": has_level,
    "drawn": drawn,
    "checked_divisors": checked_divisors,
    "checked_range": checked_range,
    "checked_regions": checked_regions,
    "checked_steps": checked_steps,
    **products(),
}
for _name, _function in _FUNCTIONS.items():
    tvm_ffi.register_global_func(f"tvm_neuron.runtime.{_name}", _function, override=True)
