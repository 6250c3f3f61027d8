"""What MXNet gave, as `record.py` wrote it down."""

import json
from pathlib import Path

import numpy as np

from tests.mxnet.seeded import seeded
from tvm_neuron.frontend.mxnet.params import parse_params
from tvm_neuron.frontend.mxnet.symbol import Symbol, parse_symbol

Arrays = dict[str, np.ndarray]

_FILE = np.load(Path(__file__).parent / "recorded.npz")
_TEXTS = json.loads(_FILE["texts"].tobytes())
NAMES = [key.removesuffix("/symbol") for key in _TEXTS if key.endswith("/symbol")]
NETWORKS = [name for name in NAMES if f"{name}/seeded" in _TEXTS]
OPERATORS = [name for name in NAMES if name not in NETWORKS]


class Written:
    """As much of a mxnet.Symbol as is read."""

    def __init__(self, name: str) -> None:
        self._text = _TEXTS[f"{name}/symbol"]

    def tojson(self) -> str:
        return self._text


def symbol_of(name: str) -> Symbol:
    return parse_symbol(Written(name).tojson(), name)


def outputs_of(name: str) -> Arrays:
    """By MXNet's names, in order."""
    return {key: _FILE[f"{name}/out/{number}"] for number, key in enumerate(_TEXTS[f"{name}/names"].split())}


def given(name: str) -> tuple[Arrays, Arrays]:
    """Inputs and weights."""
    if name in OPERATORS:
        start = f"{name}/in/"
        inputs = {key.removeprefix(start): _FILE[key] for key in _FILE.files if key.startswith(start)}
        return inputs, parse_params(_FILE[f"{name}/params"].tobytes(), name)
    shapes, sizes = json.loads(_TEXTS[f"{name}/seeded"])
    drawn = {key: seeded(key, tuple(shape)) for key, shape in sizes.items()}
    return {key: drawn[key] for key in shapes}, {key: value for key, value in drawn.items() if key not in shapes}
