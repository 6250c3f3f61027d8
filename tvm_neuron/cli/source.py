"""The model that a command reads: its arguments, and the import."""

import argparse
from typing import Any

from tvm_neuron.cli.io_config import read_io_config
from tvm_neuron.errors import OptionError
from tvm_neuron.hw import CHIPS

_ELSEWHERE = {
    "TENSORFLOW": "python -m tf2onnx.convert --saved-model DIR --output model.onnx (or --graphdef FILE.pb)",
    "PYTORCH": "torch.onnx.export(model, example_inputs, 'model.onnx')",
    "MXNET": "mxnet.onnx.export_model(...)",
    "XLA": "the framework that the HLO came from",
}
FRAMEWORKS = ("ONNX", *_ELSEWHERE)


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


def read_model(options: argparse.Namespace, io_config: str | None = None) -> tuple[Any, Any]:
    """The Relax module and its weights; its inputs as `io_config` says, or as the option does.

    Raises:
        NeuronError: it is of another framework, can't be read, or the inputs' description does not fit it.
    """
    from tvm_neuron import relay

    if options.framework != "ONNX":
        raise OptionError(
            f"--framework {options.framework}: models are read as ONNX. Convert it: {_ELSEWHERE[options.framework]}; "
            "then give the .onnx file, without --framework"
        )
    inputs = read_io_config(io_config or options.io_config)
    return relay.frontend.from_onnx(options.model, inputs.shapes, inputs.dtypes or "float32", values=inputs.values)


def device_name(target: str) -> str:
    """The device of --target as BuildOptions name it."""
    return f"neuron/{target}" if target in CHIPS else target
