"""The two files of a model of MXNet: `NAME-symbol.json`, and `NAME-0000.params` of some epoch beside it."""

import re
from os.path import isfile  # which also knows that a name may be too long, unlike that of `Path`
from pathlib import Path

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.mxnet.params import Weights, parse_params
from tvm_neuron.frontend.mxnet.symbol import Symbol, parse_symbol

_SYMBOL = "-symbol.json"
_PARAMS = ".params"


def is_mxnet(path: Path) -> bool:
    """Whether the name is that of a symbol or of weights."""
    return path.name.endswith((_SYMBOL, _PARAMS))


def read(path: Path) -> tuple[Symbol, Weights]:
    """The model that either of its two files belongs to.

    Raises:
        ModelError: one of them is missing or no such file, and see `files_of`.
    """
    symbol, params = files_of(path)
    return parse_symbol(_read(symbol), f"'{symbol}'"), parse_params(_read(params), f"'{params}'")


def files_of(path: Path) -> tuple[Path, Path]:
    """Symbol and weights of the model that either of them belongs to.

    Raises:
        ModelError: there are no weights beside a symbol, or those of several epochs to choose from.
    """
    if path.name.endswith(_PARAMS):
        stem = re.sub(r"(-\d+)?\.params$", "", path.name)
        return path.with_name(stem + _SYMBOL), path
    return path, _weights_of(path)


def _weights_of(symbol: Path) -> Path:
    stem = symbol.name.removesuffix(_SYMBOL)
    form = re.compile(re.escape(stem) + r"(-\d+)?\.params")
    if not isfile(symbol):
        return symbol  # which reading says
    found = sorted(each for each in symbol.parent.iterdir() if form.fullmatch(each.name))
    if not found:
        raise ModelError(f"'{symbol}' has no weights: put '{stem}-0000{_PARAMS}' beside it")
    if len(found) > 1:
        names = ", ".join(each.name for each in found)
        raise ModelError(f"'{symbol}' has weights of several epochs: give the file of one instead ({names})")
    return found[0]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ModelError(f"'{path}' can't be read: {error.strerror}") from error
