"""`relay.frontend`: the importers, with Relay's signatures; those that are not here say how to get to one that is."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import tvm

from tvm_neuron import frontend
from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.coreml import from_coreml
from tvm_neuron.frontend.mxnet import from_mxnet
from tvm_neuron.frontend.tensorflow import from_keras, from_tensorflow
from tvm_neuron.frontend.tflite import from_tflite
from tvm_neuron.frontend.torch import InputInfos, check_arguments, script_as_onnx
from tvm_neuron.relay import onnx_model

if TYPE_CHECKING:
    import onnx

_ELSEWHERE = {
    "from_paddle": "paddle2onnx: paddle2onnx --model_dir ... --save_file model.onnx",
    "from_caffe": "caffe2onnx",
    "from_caffe2": "torch: it became part of PyTorch, whose torch.onnx.export writes its models",
    "from_darknet": "darknet2onnx or PyTorch's readers of .cfg and .weights files",
    "from_oneflow": "oneflow_onnx: oneflow_onnx.oneflow2onnx.util.convert_to_onnx_and_check",
}
"""Importers of TVM 0.18 that are not here: what writes such models as ONNX."""

__all__ = [
    "from_coreml", "from_keras", "from_mxnet", "from_onnx", "from_pytorch", "from_tensorflow", "from_tflite",
    *_ELSEWHERE,
]  # fmt: skip


def from_onnx(
    model: "onnx.ModelProto | str | os.PathLike[str]",
    shape: Mapping[str, Sequence[Any]] | None = None,
    dtype: str | dict[str, str] = "float32",
    opset: int | None = None,
    freeze_params: bool = True,
    convert_config: Mapping[str, Any] | None = None,
    export_node_renamed_model_path: str | None = None,
    *,
    values: Mapping[str, Any] | None = None,
) -> tuple[tvm.IRModule, frontend.Params]:
    """`tvm_neuron.frontend.from_onnx` with all arguments of TVM 0.18; `convert_config` changes nothing.

    A model whose sizes are not all known, or of which shapes depend on values of inputs, gives a module that is open:
    `create_executor` and `vm.compile` compile it for each call's shapes and values, its weights are in it, not in the
    parameters; `relay.build` says which shape or value it needs. A shape that is given stands for the model's own, also
    where that has other axes. One with sizes that only a run tells, as detectors have behind their suppression, runs in
    stages, each compiled for what those before it gave; what is compiled is kept for the same sizes.

    Into the folder `export_node_renamed_model_path` a copy of the model is written, whose nodes have the names that
    reports call them by. Operators that draw without a seed get one at import, with a warning.

    Raises OptionError: the copy can't be written; and what `tvm_neuron.frontend.from_onnx` raises.
    """
    del convert_config
    if export_node_renamed_model_path is not None:
        onnx_model.write_renamed(model, export_node_renamed_model_path)
    return onnx_model.from_onnx(model, shape, dtype, opset, freeze_params, values)


def from_pytorch(
    script_module: Any,
    input_infos: InputInfos,
    custom_convert_map: Mapping[str, Callable[..., Any]] | None = None,
    default_dtype: str = "float32",
    use_parser_friendly_name: bool = False,
    keep_quantized_weight: bool = False,
    export_renamed_c_graph_path: str | None = None,
    preserve_pytorch_scopes: bool = False,
) -> tuple[tvm.IRModule, frontend.Params]:
    """`tvm_neuron.frontend.torch.from_pytorch` with its arguments; it raises what that does.

    A model inside which sizes depend on data, such as a detector, gives a module that is open, as of `from_onnx`.
    """
    del use_parser_friendly_name, keep_quantized_weight, export_renamed_c_graph_path, preserve_pytorch_scopes
    check_arguments(script_module, custom_convert_map)
    model = script_as_onnx(script_module, input_infos, default_dtype)
    return onnx_model.from_onnx(model, None, default_dtype, None, True, None)


def _refused(name: str, converter: str) -> Callable[..., Any]:
    def importer(*args: Any, **kwargs: Any) -> Any:
        """Raises ModelError: there is no such importer; the message says what to use instead."""
        del args, kwargs
        raise ModelError(
            f"relay.frontend.{name} is not here: write the model as ONNX ({converter}) and read it with from_onnx"
        )

    importer.__name__ = name
    return importer


globals().update({name: _refused(name, converter) for name, converter in _ELSEWHERE.items()})
