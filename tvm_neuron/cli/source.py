"""The model that a command reads: its arguments, and the import."""

import argparse
from pathlib import Path
from typing import Any

from tvm_neuron.bundle import IoConfig
from tvm_neuron.errors import OptionError
from tvm_neuron.hw import CHIPS

_ELSEWHERE = {
    "TENSORFLOW": "python -m tf2onnx.convert --saved-model DIR --output model.onnx (or --graphdef FILE.pb)",
    "PYTORCH": "torch.onnx.export(model, example_inputs, 'model.onnx')",
    "MXNET": "mxnet.onnx.export_model(...)",
    "XLA": "the framework that the HLO came from",
}
FRAMEWORKS = ("ONNX", *_ELSEWHERE)
_TFLITE = "python -m tf2onnx.convert --tflite FILE.tflite --output model.onnx"
_MLIR = "export it from the framework that it came from, not from its MLIR"
_SUFFIXES = (
    dict.fromkeys((".pt", ".pth", ".pt2", ".ckpt", ".safetensors"), _ELSEWHERE["PYTORCH"])
    | {".tflite": _TFLITE, ".mlir": _MLIR, ".hlo": _ELSEWHERE["XLA"], ".params": _ELSEWHERE["MXNET"]}
    | dict.fromkeys((".h5", ".keras"), "python -m tf2onnx.convert --keras FILE --output model.onnx")
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments about the model and the chip."""
    parser.add_argument("model", metavar="MODEL.onnx")
    parser.add_argument("--framework", type=str.upper, choices=FRAMEWORKS, default="ONNX", help="ONNX (the default)")
    parser.add_argument(
        "--io-config",
        metavar="JSON",
        help='shapes, dtypes and values of inputs, {"inputs": {"x": [[1, 3, 224, 224], "float32"]}}: text, file or URI',
    )
    parser.add_argument("--target", default="inf1", help=f"{', '.join(CHIPS)} or a device description (.json)")


def check_framework(options: argparse.Namespace) -> None:
    """Models are ONNX files.

    Raises:
        OptionError: --framework, or the name of the file, says another; the message says how to convert the model.
    """
    if options.framework != "ONNX":
        raise OptionError(
            f"--framework {options.framework}: models are read as ONNX. Convert it: {_ELSEWHERE[options.framework]}; "
            "then give the .onnx file, without --framework"
        )
    advice = _SUFFIXES.get(Path(options.model).suffix.lower())
    if advice:
        raise OptionError(f"{options.model}: models are read as ONNX. Convert it: {advice}; then give the .onnx file")


def read_model(model: Any, inputs: IoConfig) -> tuple[Any, Any]:
    """The Relax module and its weights; `model` is the path of a file or a ModelProto.

    Raises:
        NeuronError: it can't be read, or `inputs` does not fit it.
    """
    from tvm_neuron import relay

    return relay.frontend.from_onnx(model, inputs.shapes, inputs.dtypes or "float32", values=inputs.values)


def device_name(target: str) -> str:
    """The device of --target as BuildOptions name it."""
    return f"neuron/{target}" if target in CHIPS else target
