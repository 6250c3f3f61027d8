"""Names of TVM 0.18 that TVM 0.27 no longer has, put back for scripts that use them."""

import sys
from types import ModuleType
from typing import Any

import tvm
import tvm.contrib
import tvm_ffi

from tvm_neuron.errors import NeuronError
from tvm_neuron.relay import aliases, graph_executor
from tvm_neuron.relay.contrib import utils
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
_device = tvm.device


def install() -> None:
    """`tvm.relay`, `tvm.contrib.graph_executor`, `tvm.nd` and `tvm.device("neuron")`; again changes nothing."""
    if hasattr(tvm, "relay"):
        return
    aliases.install(_ALIASES)
    tvm.relay = relay = sys.modules["tvm.relay"] = sys.modules["tvm_neuron.relay"]
    tvm.contrib.graph_executor = sys.modules["tvm.contrib.graph_executor"] = graph_executor
    tvm.contrib.utils = sys.modules["tvm.contrib.utils"] = utils
    for name in ("nn", "image", "vision", "annotation", "qnn"):  # no files of their own there
        sys.modules[f"tvm.relay.{name}"] = getattr(relay, name)
    sys.modules["tvm.relay.qnn.op"] = relay.qnn.op
    tvm.register_func = tvm.register_global_func
    tvm.runtime.container = sys.modules["tvm.runtime.container"] = _make_container()
    tvm.runtime.NDArray = tvm.runtime.Tensor
    tvm.runtime.vm.VirtualMachine, tvm.runtime.vm.Executable = VirtualMachine, Executable
    if not hasattr(tvm, "nd"):
        tvm.nd = sys.modules["tvm.nd"] = _make_nd()
    tvm.device = _neuron_or_other_device
    tvm.runtime.Device.device_type = property(lambda device: int(device.dlpack_device_type()))
    tvm.runtime.Device.device_id = property(lambda device: device.index)
    if not hasattr(tvm, "tir"):
        tvm.tir = sys.modules["tvm.tir"] = tvm.tirx
    tvm.relax.Var.type_annotation = property(lambda var: var.ty)  # what a variable of an imported module says it is
    if not hasattr(tvm.relax.Var, "name_hint"):
        tvm.relax.Var.name_hint = property(lambda var: var.name)
    tvm.te.size_var = getattr(tvm.te, "size_var", tvm.te.var)
    if "tvm._ffi.base" not in sys.modules:
        _make_ffi()


def _make_nd() -> ModuleType:
    nd = ModuleType("tvm.nd", "Tensors, under their name of TVM 0.18.")
    nd.array = tvm.runtime.tensor  # type: ignore[attr-defined]
    nd.empty = tvm.runtime.empty  # type: ignore[attr-defined]
    nd.NDArray = tvm.runtime.Tensor  # type: ignore[attr-defined]
    return nd


def _make_container() -> ModuleType:
    container = ModuleType("tvm.runtime.container", "The results of functions that give several.")
    container.ADT = list  # type: ignore[attr-defined]  # which is what they are here
    return container


def _make_ffi() -> None:
    """`tvm._ffi.base.TVMError`, by which scripts catch what TVM and this project raise."""
    ffi, base = (ModuleType(name, "Errors, under their names of TVM 0.18.") for name in ("tvm._ffi", "tvm._ffi.base"))
    ffi.get_global_func, ffi.register_func = tvm_ffi.get_global_func, tvm_ffi.register_global_func  # type: ignore[attr-defined]
    ffi.base, base.TVMError = base, (RuntimeError, NeuronError)  # type: ignore[attr-defined]
    tvm.error.TVMError = base.TVMError
    sys.modules["tvm._ffi"], sys.modules["tvm._ffi.base"], tvm._ffi = ffi, base, ffi


def _neuron_or_other_device(name: Any, index: Any = None) -> tvm.runtime.Device:
    """`tvm.device`, which also takes `neuron` and its tags: their tensors live in the host's memory."""
    if isinstance(name, str) and name.split("/")[0] == "neuron":
        return tvm.cpu(index or 0)
    return _device(name, index) if index is not None else _device(name)
