"""from_keras and from_tensorflow, with the signatures of TVM 0.18."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import tvm

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.onnx import from_onnx
from tvm_neuron.frontend.tensorflow.captured import Captured, captured
from tvm_neuron.frontend.tensorflow.to_onnx import to_onnx

_Imported = tuple[tvm.IRModule, dict[str, tvm.runtime.Tensor]]


def from_keras(model: Any, shape: Mapping[str, Sequence[int]] | None = None, layout: str = "NCHW") -> _Imported:
    """The module and weights of a model of Keras on TensorFlow.

    As in TVM 0.18, images come in and go out with their channels first unless `layout` is another ("NHWC", "NDHWC",
    "NWC"); `shape` is in that layout, and needed where the model leaves its batch open. Inputs that Keras named itself
    (`keras_tensor_7`) may have the names there that they had in Relay's days (`input_1`), which then are theirs.

    Raises what `tvm_neuron.compile` raises of a model of Keras.
    """
    if layout not in ("NCHW", "NHWC", "NDHWC", "NWC"):
        raise ModelError(f"from_keras: layout = {layout!r}; known are NCHW, NHWC, NDHWC and NWC")
    return from_onnx(to_onnx(_named(captured(model), shape or ()), shape, is_nchw=layout == "NCHW"))


def _named(found: Captured, names: Iterable[str]) -> Captured:
    """Keras numbers inputs without a name in the order in which they were made; it called them otherwise once."""
    now, once = _numbered(r"keras_tensor(?:_(\d+))?", found.inputs), _numbered(r"input_(\d+)", names)
    if len(now) != len(once):
        return found
    called = dict(zip(now, once, strict=True))
    return replace(found, inputs={called.get(name, name): tensor for name, tensor in found.inputs.items()})


def _numbered(form: str, names: Iterable[str]) -> list[str]:
    """Those names that have this form, by their numbers."""
    numbers = {name: int(match[1] or 0) for name in names if (match := re.fullmatch(form, name))}
    return sorted(numbers, key=numbers.__getitem__)


def from_tensorflow(
    graph: Any, layout: str = "NHWC", shape: Mapping[str, Sequence[int]] | None = None,
    outputs: Sequence[str] | None = None, convert_config: Mapping[str, Any] | None = None,
) -> _Imported:  # fmt: skip
    """The module and weights of a GraphDef whose variables are constants; its placeholders are the inputs.

    `outputs` names nodes, or tensors as `split:1`; without it those are outputs that nothing reads. `layout` and
    `convert_config` change nothing: layouts are the compiler's choice.

    Raises what `tvm_neuron.compile` raises of a graph of TensorFlow.
    """
    del layout, convert_config
    found = captured(graph)
    if outputs:
        known = {node.name for node in graph.node}
        unknown = [name for name in outputs if name.partition(":")[0] not in known]
        if unknown:
            raise ModelError(f"from_tensorflow: the graph has no node '{unknown[0]}' to be an output")
        found = replace(found, outputs={name: name if ":" in name else f"{name}:0" for name in outputs})
    return from_onnx(to_onnx(found, shape))
