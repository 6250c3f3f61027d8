"""Files of MXNet, written here: symbols in JSON, and weights in the bytes that MXNet 1 writes."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from struct import pack
from typing import Any

import numpy as np

_NUMBERS = {"float32": 0, "float64": 1, "float16": 2, "uint8": 3, "int32": 4, "int8": 5, "int64": 6}


def symbol(*nodes: tuple[str, str, Mapping[str, Any], Sequence[Any]], heads: Sequence[Any] = ()) -> str:
    """Nodes as (operator, name, attributes, names of inputs); an input or head may be (name, number of the output)."""
    places = {name: number for number, (_, name, *_) in enumerate(nodes)}

    def output(read: Any) -> list[int]:
        name, number = read if isinstance(read, tuple) else (read, 0)
        return [places[name], number, 0]

    written = [
        {"op": op, "name": name, "attrs": {key: str(value) for key, value in attributes.items()},
         "inputs": [output(read) for read in inputs]}
        for op, name, attributes, inputs in nodes
    ]  # fmt: skip
    last = [output(each) for each in heads or [nodes[-1][1]]]
    return json.dumps({"nodes": written, "heads": last, "arg_nodes": [], "attrs": {"mxnet_version": ["int", 10901]}})


def params(arrays: Mapping[str, np.ndarray]) -> bytes:
    """As of MXNet 1: `mx.nd.save`."""
    found = pack("<QQQ", 0x112, 0, len(arrays))
    for array in arrays.values():
        shape = pack(f"<I{array.ndim}q", array.ndim, *array.shape)
        found += pack("<Ii", 0xF993FAC9, 0) + shape + pack("<iii", 1, 0, _NUMBERS[str(array.dtype)]) + array.tobytes()
    found += pack("<Q", len(arrays))
    return found + b"".join(pack("<Q", len(name)) + name.encode() for name in arrays)


VARIABLE = "null"


def write_network(folder: Path) -> dict[str, np.ndarray]:
    """net-symbol.json and net-0000.params, a convolution and a dense layer of images of 3 x 32 x 32; the weights."""
    rng = np.random.default_rng(1)
    weights = {
        "conv_weight": rng.standard_normal((8, 3, 3, 3)) / 5, "conv_bias": rng.standard_normal(8),
        "fc_weight": rng.standard_normal((10, 8)), "fc_bias": rng.standard_normal(10),
    }  # fmt: skip
    weights = {name: value.astype("float32") for name, value in weights.items()}
    text = symbol(
        (VARIABLE, "data", {}, ()),
        *[(VARIABLE, name, {}, ()) for name in weights],
        (
            "Convolution",
            "conv",
            {"kernel": (3, 3), "num_filter": 8, "pad": (1, 1)},
            ("data", "conv_weight", "conv_bias"),
        ),
        ("Activation", "relu", {"act_type": "relu"}, ("conv",)),
        ("Pooling", "pool", {"global_pool": True, "pool_type": "avg", "kernel": (1, 1)}, ("relu",)),
        ("FullyConnected", "fc", {"num_hidden": 10}, ("pool", "fc_weight", "fc_bias")),
        (VARIABLE, "softmax_label", {}, ()),
        ("SoftmaxOutput", "softmax", {}, ("fc", "softmax_label")),
    )
    (folder / "net-symbol.json").write_text(text)
    (folder / "net-0000.params").write_bytes(params({f"arg:{name}": value for name, value in weights.items()}))
    return weights
