"""What MXNet itself says of the cases: `python -m tests.mxnet.record` with MXNet 1.9.1 and NumPy 1.23 writes it down.

Nothing of this project is imported, since it asks for a later NumPy. There are two runs, in processes of their own:
MXNet's kernels of MKLDNN fail at some deconvolutions, and without them at recurrent layers.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import mxnet as mx
import numpy as np

from tests.mxnet import networks
from tests.mxnet.operators import cases
from tests.mxnet.seeded import seeded

PATH = Path(__file__).parent / "recorded.npz"


def main() -> None:
    if len(sys.argv) == 2:
        with_mkldnn, path = os.environ["MXNET_MKLDNN_ENABLED"] == "1", Path(sys.argv[1])
        np.savez(path, **recorded(with_mkldnn))
        return
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for enabled in ("0", "1"):
            part = f"{folder}/{enabled}.npz"
            command = [sys.executable, "-m", "tests.mxnet.record", part]
            subprocess.run(command, env=os.environ | {"MXNET_MKLDNN_ENABLED": enabled}, check=True)
            found |= np.load(part)
    texts = {key: str(found.pop(key)) for key in [*found] if found[key].dtype.kind == "U"}
    np.savez_compressed(PATH, texts=np.frombuffer(json.dumps(texts).encode(), np.uint8), **found)


def recorded(is_recurrent):
    """The cases with recurrent layers, or those without."""
    found = {}
    for name, (symbol, inputs, weights) in cases().items():
        if ('"RNN"' in symbol.tojson()) != is_recurrent:
            continue
        arrays = {key: mx.nd.array(value, dtype=value.dtype) for key, value in (inputs | weights).items()}
        found |= record(name, symbol, inputs, arrays)
        with tempfile.NamedTemporaryFile(suffix=".params") as file:
            mx.nd.save(file.name, {f"arg:{key}": arrays[key] for key in weights})
            found[f"{name}/params"] = np.frombuffer(Path(file.name).read_bytes(), np.uint8)
    for name, (symbol, shapes) in networks.networks().items():
        if ('"RNN"' in symbol.tojson()) != is_recurrent:
            continue
        of_arguments, _, of_states = symbol.infer_shape(**shapes)
        names = [*symbol.list_arguments(), *symbol.list_auxiliary_states()]
        sizes = dict(zip(names, [*of_arguments, *of_states], strict=True))
        drawn = {key: seeded(key, shape) for key, shape in sizes.items()}
        found |= record(name, symbol, {}, {key: mx.nd.array(value) for key, value in drawn.items()})
        found[f"{name}/seeded"] = np.array(json.dumps([shapes, sizes]))
    return found


def record(name, symbol, inputs, arrays):
    """The symbol, what goes in and what comes out."""
    names = set(symbol.list_arguments())
    states = {key: arrays[key] for key in symbol.list_auxiliary_states()}
    executor = symbol.bind(mx.cpu(), {key: arrays[key] for key in arrays if key in names}, aux_states=states)
    outputs = executor.forward(is_train=False)
    found = {f"{name}/in/{key}": value for key, value in inputs.items()}
    found |= {f"{name}/out/{number}": value.asnumpy() for number, value in enumerate(outputs)}
    return found | {
        f"{name}/symbol": np.array(symbol.tojson()),
        f"{name}/names": np.array(" ".join(symbol.list_outputs())),
    }


if __name__ == "__main__":
    main()
