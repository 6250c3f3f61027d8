"""From what torch captured to an ONNX model, by torch's own exporters."""

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

import onnx

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.cause import cause
from tvm_neuron.frontend.torch.capture import Arguments
from tvm_neuron.frontend.torch.names import name_by_modules
from tvm_neuron.frontend.torch.need import need_torch

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
        with torch.no_grad(), _silent():
            model = _of_program(captured) if is_program else _of_script(captured, arguments, input_names)
    except Exception as error:
        raise ModelError(f"torch's exporter to ONNX can't write the model: {cause(error)}") from error
    return name_by_modules(model)


def _of_program(program: Any) -> onnx.ModelProto:
    torch = need_torch()
    program = import_module("tvm_neuron.frontend.torch.decompose").decomposed(program)  # which imports torch
    written = torch.onnx.export(program, dynamo=True, opset_version=OPSET, verbose=False)
    model: onnx.ModelProto = written.model_proto
    return model


def _of_script(script: Any, arguments: Arguments, input_names: Sequence[str] | None) -> onnx.ModelProto:
    torch = need_torch()
    file = io.BytesIO()
    torch.onnx.export(
        script, arguments.positional, file, kwargs=dict(arguments.named or {}), dynamo=False, opset_version=OPSET,
        input_names=list(input_names or _parameters(script, arguments)),
    )  # fmt: skip
    return onnx.load_model_from_string(file.getvalue())


def _parameters(script: Any, arguments: Arguments) -> list[str]:
    """The names of the arguments, as far as each is one tensor."""
    schema = (script.forward if hasattr(script, "forward") else script).schema
    names = [argument.name for argument in schema.arguments if argument.name != "self"]
    return [*names[: len(arguments.positional)], *(arguments.named or {})]


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Without the exporters' own prints, warnings and log."""
    level = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings(action="ignore"), contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        logging.disable(level)
