"""From what torch captured to an ONNX model, by torch's own exporters."""

import contextlib
import io
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import onnx

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.cause import cause
from tvm_neuron.frontend.torch.capture import Arguments
from tvm_neuron.frontend.torch.names import name_by_modules, path_of_failure
from tvm_neuron.frontend.torch.narrow import with_narrow_weights
from tvm_neuron.frontend.torch.need import need_torch
from tvm_neuron.frontend.torch.quiet import quiet

OPSET = 20
"""The latest that both of torch's exporters write."""


def to_onnx(captured: Any, arguments: Arguments, input_names: Sequence[str] | None = None) -> onnx.ModelProto:
    """An ExportedProgram or a ScriptModule as ONNX; its operators have the names of the modules that they are from.

    Raises:
        ModelError: torch's exporter can't write it, with what it says.
    """
    torch = need_torch()
    is_program = isinstance(captured, torch.export.ExportedProgram)
    try:
        with torch.no_grad(), quiet(), contextlib.redirect_stdout(io.StringIO()):  # the exporters print
            model = _of_program(captured) if is_program else _of_script(captured, arguments, input_names)
    except ModelError:
        raise
    except Exception as error:
        at = path_of_failure(error)
        where = f"operator '{at}'" if at else "the model"
        raise ModelError(f"torch's exporter to ONNX can't write {where}: {cause(error)}") from error
    return name_by_modules(model)


def _of_program(program: Any) -> onnx.ModelProto:
    torch = need_torch()
    program = import_module("tvm_neuron.frontend.torch.decompose").decomposed(program)  # which imports torch
    written = torch.onnx.export(program, dynamo=True, opset_version=OPSET, verbose=False)
    return with_narrow_weights(written.model_proto)


def _of_script(script: Any, arguments: Arguments, input_names: Sequence[str] | None) -> onnx.ModelProto:
    torch = need_torch()
    file = io.BytesIO()
    given = _by_position(script, arguments)  # torch.onnx takes the named ones of a script for one input
    torch.onnx.export(
        script, tuple(given.values()), file, dynamo=False, opset_version=OPSET, input_names=list(input_names or given)
    )
    return onnx.load_model_from_string(file.getvalue())


def _by_position(script: Any, arguments: Arguments) -> dict[str, Any]:
    """The arguments of the call by their names, in the order that the script has them."""
    schema = (script.forward if hasattr(script, "forward") else script).schema
    names = [argument.name for argument in schema.arguments if argument.name != "self"]
    given = dict(zip(names, arguments.positional, strict=False)) | dict(arguments.named or {})
    if len(given) != len(arguments.positional) + len(arguments.named or {}) or not given.keys() <= set(names):
        raise ModelError(
            f"the script takes the arguments {', '.join(names)}, got {len(arguments.positional)} by position"
            f"{''.join(f' and {name}' for name in arguments.named or {})}"
        )
    before = names[: len(given)]
    if missing := [name for name in before if name not in given]:
        raise ModelError(f"the script has the arguments {', '.join(missing)} before one that was given: give them too")
    return {name: given[name] for name in before}
