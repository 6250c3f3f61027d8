"""The bundle of an internal error: what it takes to see it again, in one file.

Weights are left out unless asked for; `neuron-cc replay` puts seeded random numbers in their place.
"""

import argparse
import json
import platform
import sys
import traceback
import zipfile
from importlib.metadata import distributions
from io import BytesIO
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from tvm_neuron import neff

_LARGEST_KEPT_ELEMS = 64  # shapes and axes are constants too
MODEL, FILES = "model.onnx", "files"
_LEFT_OUT = "weights left out by neuron-cc"


def write_bundle(error: BaseException, options: argparse.Namespace, words: list[str]) -> Path:
    """Write `neuron-cc-bundle-N.zip` into the working directory and give its path.

    It holds the model, the other files that the command line names (a device, an io-config), and the words with their
    places in the bundle.

    Raises:
        NeffError: it can't be written there.
    """
    held = BytesIO()
    others = [word for word in words if word not in (options.model, options.output, options.logfile)]
    files = {word: f"{number}-{Path(word).name}" for number, word in enumerate(others) if _is_file(word)}
    places = files | {options.model: MODEL, options.output: Path(options.output).name}
    if options.logfile:
        places[options.logfile] = "log.txt"
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as bundle:
        bundle.writestr("traceback.txt", "".join(traceback.format_exception(error)))
        facts = {
            "words": [places.get(word, word) for word in words],
            "python": platform.python_version(),
            "machine": platform.platform(),
            "packages": {each.metadata["Name"]: each.version for each in distributions()},
        }
        bundle.writestr("facts.json", json.dumps(facts, indent=2, sort_keys=True))
        for word, place in files.items():
            bundle.write(word, f"{FILES}/{place}")
        proto = onnx.load(options.model)
        proto = proto if options.bundle_weights else without_weights(proto)
        bundle.writestr(f"{FILES}/{MODEL}", proto.SerializeToString())
    number = next(n for n in range(1, sys.maxsize) if not Path(f"neuron-cc-bundle-{n}.zip").exists())
    path = Path(f"neuron-cc-bundle-{number}.zip")
    neff.write_aside(str(path), [held.getvalue()])
    return path


def _is_file(word: str) -> bool:
    try:
        return Path(word).is_file()
    except OSError:  # a text that is too long for a name
        return False


def without_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with the values of its larger floating weights taken out."""
    found = onnx.ModelProto()
    found.CopyFrom(model)
    for tensor in found.graph.initializer:
        array_type = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
        if np.prod(tensor.dims) > _LARGEST_KEPT_ELEMS and (array_type.kind == "f" or array_type.name == "bfloat16"):
            for field in ("raw_data", "float_data", "double_data", "int32_data"):
                tensor.ClearField(field)
            tensor.doc_string = _LEFT_OUT
    return found


def with_random_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with seeded random numbers where weights were left out, small enough to keep activations finite."""
    rng = np.random.default_rng(0)
    for tensor in model.graph.initializer:
        if tensor.doc_string == _LEFT_OUT:
            shape = tuple(tensor.dims)
            values = rng.standard_normal(shape) / np.sqrt(max(np.prod(shape[1:]), 1.0))
            dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
            tensor.CopyFrom(numpy_helper.from_array(values.astype(dtype), tensor.name))
    return model
