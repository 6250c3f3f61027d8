"""The model that a command reads: its arguments, and the import."""

import argparse
from os.path import isfile  # which also knows that a name may be too long, unlike that of `Path`
from pathlib import Path
from typing import Any

from tvm_neuron.bundle import IoConfig
from tvm_neuron.errors import ModelError, OptionError
from tvm_neuron.hw import CHIPS

FRAMEWORKS = ("ONNX", "PYTORCH", "XLA", "MXNET", "TENSORFLOW", "KERAS", "TFLITE")
_ENDINGS = {
    "PYTORCH": (".pt2", ".pt", ".pth"), "XLA": (".mlir", ".mlirbc", ".stablehlo", ".hlo"),
    "MXNET": ("-symbol.json", ".params"), "TENSORFLOW": (".pb",), "KERAS": (".keras", ".h5"), "TFLITE": (".tflite",),
}  # fmt: skip
_ADVICE = dict.fromkeys((".ckpt", ".safetensors"), "torch.onnx.export(model, example_inputs, 'model.onnx')")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments about the model and the chip."""
    add_model(parser)
    parser.add_argument("--target", default="inf1", help=f"{', '.join(CHIPS)} or a device description (.json)")


def add_model(parser: argparse.ArgumentParser) -> None:
    """The arguments about the model alone."""
    parser.add_argument("model", metavar="MODEL", help="a file of one of the frameworks, or a SavedModel's folder")
    parser.add_argument("--framework", type=str.upper, choices=FRAMEWORKS, help="without it, the file's name says it")
    parser.add_argument(
        "--io-config",
        metavar="JSON",
        help='shapes, dtypes and values of inputs, {"inputs": {"x": [[1, 3, 224, 224], "float32"]}}: text, file or URI',
    )


def check_framework(options: argparse.Namespace) -> None:
    """Models are files of the frameworks.

    Raises:
        OptionError: the name of the file says another format; the message says how to convert the model. Or it
            contradicts --framework.
    """
    advice = _ADVICE.get(Path(options.model).suffix.lower())
    if advice:
        raise OptionError(
            f"{options.model}: models are read as ONNX. Convert it: {advice}; then give the .onnx file"
            + (", without --framework" if options.framework else "")
        )
    found = _framework_of(options.model)
    if options.framework not in (None, found):
        known = "; ".join(f"{framework}: {', '.join(endings)}" for framework, endings in _ENDINGS.items())
        raise OptionError(
            f"--framework {options.framework}: '{options.model}' is no file of it by its name ({known}; others are "
            "read as ONNX)"
        )


def _framework_of(name: str) -> str:
    """By the name of a file; ONNX reads, or refuses, all others."""
    if isfile(Path(name) / "saved_model.pb"):
        return "TENSORFLOW"
    if name.lower().endswith(".pb") and isfile(name):
        from tvm_neuron.frontend.xla import is_xla  # loads TVM

        return "XLA" if is_xla(Path(name)) else "TENSORFLOW"
    return next((framework for framework, endings in _ENDINGS.items() if name.lower().endswith(endings)), "ONNX")


def read_model(model: Any, inputs: IoConfig) -> tuple[Any, Any]:
    """The Relax module and its weights; `model` is the path of a file or a ModelProto.

    Raises:
        NeuronError: it can't be read, or `inputs` does not fit it.
    """
    from tvm_neuron.frontend import from_onnx
    from tvm_neuron.frontend.tflite import from_tflite, read_bytes

    if isinstance(model, Path) and _framework_of(str(model)) == "TFLITE":
        return from_tflite(read_bytes(model), inputs.shapes, inputs.dtypes)
    found = as_onnx(model, inputs)
    return from_onnx(found, inputs.shapes, inputs.dtypes or "float32", values=inputs.values)


def as_onnx(model: Any, inputs: IoConfig) -> Any:
    """A file of PyTorch, StableHLO, MXNet, TensorFlow or Keras as a ModelProto; anything else as it is.

    Raises:
        NeuronError: it can't be read, or a script is not told its inputs.
    """
    framework = _framework_of(str(model)) if isinstance(model, Path) else "ONNX"
    if framework == "MXNET":
        from tvm_neuron.frontend import mxnet

        return mxnet.to_onnx(*mxnet.read(model), inputs.shapes or {}, inputs.dtypes)
    if framework in ("TENSORFLOW", "KERAS"):
        from tvm_neuron.frontend import tensorflow

        return tensorflow.to_onnx(tensorflow.captured(tensorflow.read(model)), inputs.shapes)
    if framework == "XLA":
        from tvm_neuron.frontend import xla

        found = xla.to_onnx(xla.read(model))
        if isinstance(found, xla.Parts):
            raise ModelError(
                f"'{model}' is for {found.plan.cores} devices, and a .neff and its commands are of one program: "
                "compile it by tvm_neuron.compile, whose libraries hold several"
            )
        return found
    if framework != "PYTORCH":
        return model
    from tvm_neuron.frontend import torch

    program = torch.read(model)
    if not torch.is_script(program):
        return torch.exported(program).model
    if not inputs.shapes:
        raise ModelError(
            f"'{model}' holds a script, which does not know the shapes of its inputs: give them in the order of its "
            'arguments, --io-config \'{"inputs": {"x": [[1, 3, 224, 224], "float32"]}}\''
        )
    infos = [(name, (shape, inputs.dtypes[name])) for name, shape in inputs.shapes.items()]
    return torch.script_as_onnx(program, infos)


def device_name(target: str) -> str:
    """The device of --target as BuildOptions name it."""
    return f"neuron/{target}" if target in CHIPS else target
