"""Names of TVM 0.18 that TVM 0.27 no longer has, put back for scripts that use them."""

import sys
from types import ModuleType
from typing import Any

import tvm
import tvm.contrib

from tvm_neuron.relay import frontend, graph_executor

_device = tvm.device


def install() -> None:
    """`tvm.relay`, `tvm.contrib.graph_executor`, `tvm.nd` and `tvm.device("neuron")`; again changes nothing."""
    relay = sys.modules["tvm_neuron.relay"]
    sys.modules["tvm.relay"] = relay
    sys.modules["tvm.relay.frontend"] = frontend
    sys.modules["tvm.contrib.graph_executor"] = graph_executor
    tvm.relay = relay
    tvm.contrib.graph_executor = graph_executor
    if not hasattr(tvm, "nd"):
        tvm.nd = sys.modules["tvm.nd"] = _make_nd()
    tvm.device = _neuron_or_other_device


def _make_nd() -> ModuleType:
    nd = ModuleType("tvm.nd", "Tensors, under their name of TVM 0.18.")
    nd.array = tvm.runtime.tensor  # type: ignore[attr-defined]
    nd.empty = tvm.runtime.empty  # type: ignore[attr-defined]
    nd.NDArray = tvm.runtime.Tensor  # type: ignore[attr-defined]
    return nd


def _neuron_or_other_device(name: Any, index: Any = None) -> tvm.runtime.Device:
    """`tvm.device`, which also takes `neuron` and its tags: their tensors live in the host's memory."""
    if isinstance(name, str) and name.split("/")[0] == "neuron":
        return tvm.cpu(index or 0)
    return _device(name, index) if index is not None else _device(name)
