"""Names of TVM 0.18 that TVM 0.27 no longer has, put back for scripts that use them."""

import re
import sys
from importlib import import_module
from operator import attrgetter
from types import ModuleType
from typing import Any

import tvm
import tvm.contrib
import tvm_ffi

from tvm_neuron.build import is_neuron
from tvm_neuron.errors import NeuronError
from tvm_neuron.relay import aliases, equality, graph_executor
from tvm_neuron.relay.contrib import utils
from tvm_neuron.relay.ir.ty import AnyDim
from tvm_neuron.relay.vm import Executable, VirtualMachine

_ALIASES = {
    "tvm.relay": "tvm_neuron.relay",
    "tvm.contrib.graph_executor": "tvm_neuron.relay.graph_executor",
    "tvm.contrib.graph_runtime": "tvm_neuron.relay.graph_executor",
    "tvm.contrib.cc": "tvm.support.cc",
    "tvm.contrib.torch": "tvm_neuron.torch.contrib",
    "tvm.contrib": "tvm_neuron.relay.contrib",
    "tvm.driver.tvmc": "tvm_neuron.tvmc",
    "tvm.meta_schedule": "tvm.s_tir.meta_schedule",
    "tvm.script.tir": "tvm_neuron.relay.script_tir",
}
_PARTS = {
    "tvm.relay.op.nn": "nn", "tvm.relay.op.image": "image", "tvm.relay.op.vision": "vision",
    "tvm.relay.op.op": "op", "tvm.relay.op.tensor": "op", "tvm.relay.op.transform": "op",
    "tvm.relay.nn": "nn", "tvm.relay.image": "image", "tvm.relay.vision": "vision",
    "tvm.relay.annotation": "annotation", "tvm.relay.qnn": "qnn", "tvm.relay.qnn.op": "qnn.op",
    "tvm.relay.qnn.transform": "transform",
    "tvm.relay.ty": "ty", "tvm.relay.function": "expr",
    "tvm.relay.analysis.analysis": "analysis", "tvm.relay.transform.transform": "transform",
    "tvm.relay.frontend.onnx": "frontend", "tvm.relay.frontend.pytorch": "frontend",
    "tvm.relay.frontend.tensorflow": "frontend", "tvm.relay.frontend.keras": "frontend",
    "tvm.relay.frontend.tflite": "frontend", "tvm.relay.frontend.mxnet": "frontend",
    "tvm.relay.frontend.coreml": "frontend",
    "tvm.relay.backend.vm": "vm", "tvm.relay.backend.executor": "backend", "tvm.relay.backend.runtime": "backend",
}  # fmt: skip
"""Modules that had files of their own, and which part of `relay` has what stood in them."""

_device = tvm.device


def install() -> None:
    """`tvm.relay`, `tvm.contrib.graph_executor`, `tvm.nd` and `tvm.device("neuron")`; again changes nothing."""
    if hasattr(tvm, "relay"):
        return
    aliases.install(_ALIASES)
    tvm.relay = relay = sys.modules["tvm.relay"] = sys.modules["tvm_neuron.relay"]
    tvm.contrib.graph_executor = sys.modules["tvm.contrib.graph_executor"] = graph_executor
    tvm.contrib.utils = sys.modules["tvm.contrib.utils"] = utils
    for old, part in _PARTS.items():
        _put(old, attrgetter(part)(relay))
    _put("tvm.relay.param_dict", tvm.runtime.params)
    tvm.register_func = tvm.register_global_func
    _put("tvm.runtime.container", _module("tvm.runtime.container", "Results of functions that give several.", ADT=list))
    _put("tvm.runtime.executor", _module("tvm.runtime.executor", "Executors.", AotModule=graph_executor.GraphModule))
    tvm.runtime.NDArray = tvm.runtime.Tensor
    tvm.runtime.Tensor.asnumpy = tvm.runtime.Tensor.numpy
    tvm.runtime.vm.VirtualMachine, tvm.runtime.vm.Executable = VirtualMachine, Executable
    if not hasattr(tvm, "nd"):
        _put("tvm.nd", _make_nd())
    tvm.device = tvm.context = _neuron_or_other_device
    tvm.runtime.Device.device_type = property(lambda device: int(device.dlpack_device_type()))
    tvm.runtime.Device.device_id = property(lambda device: device.index)
    if not hasattr(tvm, "tir"):
        _put("tvm.tir", tvm.tirx)
    tvm.tirx.Any = AnyDim
    tvm.relax.Var.type_annotation = property(lambda var: var.ty)  # what a variable of an imported module says it is
    if not hasattr(tvm.relax.Var, "name_hint"):
        tvm.relax.Var.name_hint = property(lambda var: var.name)
    tvm.te.size_var = getattr(tvm.te, "size_var", tvm.te.var)
    for name in ("structural_equal", "structural_hash", "assert_structural_equal"):
        setattr(tvm.ir, name, getattr(equality, name))
    if "tvm._ffi.base" not in sys.modules:
        _make_ffi()


def _put(name: str, module: ModuleType) -> None:
    """The module under a name, for `import` and as an attribute of the package."""
    sys.modules[name] = module
    package, _, last = name.rpartition(".")
    setattr(import_module(package), last, module)


def _module(name: str, doc: str, **members: Any) -> ModuleType:
    made = ModuleType(name, doc)
    vars(made).update(members)
    return made


def _make_nd() -> ModuleType:
    runtime = tvm.runtime
    names = {"array": runtime.tensor, "empty": runtime.empty, "NDArray": runtime.Tensor, "cpu": tvm.cpu}
    return _module("tvm.nd", "Tensors, under their names of TVM 0.18.", **names)


def _make_ffi() -> None:
    """`tvm._ffi.base.TVMError`, by which scripts catch what TVM and this project raise."""
    errors = (RuntimeError, NeuronError)
    functions = {"get_global_func": tvm_ffi.get_global_func, "register_func": tvm_ffi.register_global_func}
    _put("tvm._ffi", _module("tvm._ffi", "Functions by name.", **functions))
    _put("tvm._ffi.base", _module("tvm._ffi.base", "Errors.", TVMError=errors))
    tvm.TVMError = tvm.error.TVMError = errors


def _neuron_or_other_device(name: Any, index: Any = None) -> tvm.runtime.Device:
    """`tvm.device`, which also takes targets, `neuron` and `llvm` with their tags: all in the host's memory."""
    if isinstance(name, tvm.target.Target) or str(name).startswith("{"):  # as a target's text does
        target = tvm.target.Target(name)
        name = "neuron" if is_neuron(target) else target.kind.name
    if isinstance(name, str) and re.split(r"[/ ]", name)[0] in ("neuron", "llvm"):
        return tvm.cpu(index or 0)
    return _device(name, index) if index is not None else _device(name)
