"""`relay.frontend.from_pytorch`, with the signature of TVM 0.18."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import onnx
import tvm

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.onnx import Params, from_onnx
from tvm_neuron.frontend.torch.capture import Arguments
from tvm_neuron.frontend.torch.need import need_torch
from tvm_neuron.frontend.torch.to_onnx import to_onnx

InputInfos = Sequence[tuple[str, Any]]
"""Name and shape of each input, or name, shape and dtype: `("x", (1, 3))` or `("x", ((1, 3), "int64"))`."""


def from_pytorch(
    script_module: Any,
    input_infos: InputInfos,
    custom_convert_map: Mapping[str, Callable[..., Any]] | None = None,
    default_dtype: str = "float32",
    use_parser_friendly_name: bool = False,
    keep_quantized_weight: bool = False,
    export_renamed_c_graph_path: str | None = None,
    preserve_pytorch_scopes: bool = False,
) -> tuple[tvm.IRModule, Params]:
    """Import a ScriptModule (`torch.jit.trace` or `script`), whose inputs get the names, shapes and dtypes given.

    The arguments from `use_parser_friendly_name` on, which chose how Relay's text looked and how its graph was kept,
    change nothing: operators always have the names of their modules.

    Raises OptionError: torch is not installed. Raises ModelError: it is no ScriptModule, `input_infos` has another
    form, converters are given, torch can't write it as ONNX, and what `from_onnx` refuses.
    """
    check_arguments(script_module, custom_convert_map)
    return from_onnx(script_as_onnx(script_module, input_infos, default_dtype))


def check_arguments(script_module: Any, custom_convert_map: Mapping[str, Callable[..., Any]] | None) -> None:
    """Raises ModelError: it is no ScriptModule, or converters are given."""
    if not is_script(script_module):
        raise ModelError(
            f"from_pytorch takes a ScriptModule, got {type(script_module).__name__}: make one by "
            "torch.jit.trace(model, inputs), or give the model to tvm_neuron.compile"
        )
    if custom_convert_map:
        raise ModelError(
            f"from_pytorch has converters for {', '.join(custom_convert_map)}, which made Relay of torch's graphs: the "
            "import goes through ONNX; register a symbolic function by torch.onnx.register_custom_op_symbolic instead"
        )


def is_script(model: Any) -> bool:
    """Whether it is a ScriptModule, or a function of TorchScript."""
    torch = need_torch()
    return isinstance(model, torch.jit.ScriptModule | torch.jit.ScriptFunction)


def script_as_onnx(script_module: Any, input_infos: InputInfos, default_dtype: str = "float32") -> onnx.ModelProto:
    """A ScriptModule as ONNX, with inputs of these names, shapes and dtypes.

    Raises:
        ModelError: `input_infos` has another form, or torch can't write it.
    """
    pairs = [_example(info, default_dtype) for info in input_infos]
    return to_onnx(script_module, Arguments(tuple(example for _, example in pairs)), [name for name, _ in pairs])


def _example(info: Any, default_dtype: str) -> tuple[str, Any]:
    torch = need_torch()
    match info:
        case (str(name), ((*shape,), str(dtype))):
            pass
        case (str(name), (*shape,)):
            dtype = default_dtype
        case _:
            raise ModelError(
                f"input_infos has {info!r}: each is a name and a shape, or a name and (shape, dtype), with which the "
                "ScriptModule is called"
            )
    kind = getattr(torch, {"float": "float32", "int": "int32"}.get(dtype, dtype), None)
    if not isinstance(kind, torch.dtype):
        raise ModelError(f"input_infos gives '{name}' the dtype '{dtype}', which torch has not")
    return name, torch.ones([int(size) for size in shape], dtype=kind)
