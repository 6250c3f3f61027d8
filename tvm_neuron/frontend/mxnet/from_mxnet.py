"""from_mxnet: symbols of MXNet with the signature of TVM 0.18."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tvm

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.mxnet.files import read
from tvm_neuron.frontend.mxnet.params import Weights
from tvm_neuron.frontend.mxnet.symbol import parse_symbol
from tvm_neuron.frontend.mxnet.to_onnx import to_onnx
from tvm_neuron.frontend.onnx import from_onnx


def from_mxnet(
    symbol: Any,
    shape: Mapping[str, tuple[int, ...]] | None = None,
    dtype: str | Mapping[str, str] = "float32",
    arg_params: Mapping[str, Any] | None = None,
    aux_params: Mapping[str, Any] | None = None,
) -> tuple[tvm.IRModule, dict[str, tvm.runtime.Tensor]]:
    """The module and weights of a `mxnet.Symbol`, or of the `-symbol.json` or `.params` file at a path.

    `shape` gives the inputs' shapes, `dtype` theirs. `arg_params` and `aux_params` are the weights of a symbol, arrays
    of MXNet or NumPy; a file's own are used where they have none.

    Raises ModelError: it is something else, a weight or a shape is missing, or an operator is unknown.
    """
    weights: Weights = {}
    if isinstance(symbol, str | os.PathLike):
        found, weights = read(Path(symbol))
    elif hasattr(symbol, "tojson"):
        found = parse_symbol(symbol.tojson(), "the symbol")
    else:
        raise ModelError(
            f"from_mxnet takes a mxnet.Symbol or the path of a '-symbol.json', got {type(symbol).__name__}; a block of "
            "Gluon is written to files by block.export('model')"
        )
    for given in (arg_params, aux_params):
        weights |= {name: _array(value) for name, value in (given or {}).items()}
    dtypes, default = (dtype, "float32") if isinstance(dtype, Mapping) else ({}, dtype)
    return from_onnx(to_onnx(found, weights, shape or {}, dtypes, default))


def _array(value: Any) -> np.ndarray[Any, Any]:
    return np.asarray(value.asnumpy() if hasattr(value, "asnumpy") else value)
