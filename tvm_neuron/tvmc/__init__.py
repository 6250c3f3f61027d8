"""`tvm.driver.tvmc`: load a model, compile it into a package, run and tune it; signatures of TVM 0.18."""

from tvm_neuron.tvmc.compiler import compile_model as compile  # noqa: A004 - TVM's name
from tvm_neuron.tvmc.model import TVMCModel
from tvm_neuron.tvmc.model import load_model as load
from tvm_neuron.tvmc.package import TVMCPackage
from tvm_neuron.tvmc.runner import TVMCResult
from tvm_neuron.tvmc.runner import run_module as run
from tvm_neuron.tvmc.tuner import tune_model as tune

__all__ = ["TVMCModel", "TVMCPackage", "TVMCResult", "compile", "load", "run", "tune"]
