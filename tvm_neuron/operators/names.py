"""names: the operators of a framework that its door reads, asked of what reads them."""

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any

from tvm_neuron.frontend.packages import needed
from tvm_neuron.frontend.tensorflow import need_tensorflow
from tvm_neuron.frontend.torch import need_torch


def names(framework: str) -> list[str]:
    """In the order of the alphabet.

    Raises OptionError or ModelError: what reads them is not installed.
    """
    return sorted(READERS[framework]())


def _of_torch() -> Iterable[str]:
    """Those of torch's exporter, and those that are decomposed before it."""
    need_torch()
    registration = import_module("torch.onnx._internal.exporter._registration")
    written = registration.ONNXRegistry.from_torchlib().functions
    ours = import_module("tvm_neuron.frontend.torch.decompose").TABLE
    known = (str(key).replace("::", ".").removesuffix(".default") for key in (*written, *ours))
    return {name for name in known if "<" not in name}  # not Python's own functions


def _of_tensorflow() -> Iterable[str]:
    need_tensorflow()
    import_module("tf2onnx.tfonnx")
    (versions, *_) = import_module("tf2onnx.handler").tf_op.get_opsets().values()  # of the standard's own operators
    return {name for version in versions for name in version or ()}


def _of_tflite() -> Iterable[str]:
    needed("tflite", "from_tflite")
    reader: Any = import_module("tvm_neuron.frontend.tflite_sizes").KnownSizes
    return [*reader(None, None, None, None).convert_map]


def _of_converters(room: str) -> Callable[[], Iterable[str]]:
    return lambda: import_module(f"tvm_neuron.frontend.{room}.operators").CONVERTERS


READERS: Mapping[str, Callable[[], Iterable[str]]] = {
    "PYTORCH": _of_torch, "TENSORFLOW": _of_tensorflow, "KERAS": _of_tensorflow, "TFLITE": _of_tflite,
    "XLA": _of_converters("xla"), "MXNET": _of_converters("mxnet"),
}  # fmt: skip
