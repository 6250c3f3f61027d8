"""Without the extra, one sentence says which it is."""

import sys
from pathlib import Path

import pytest

from tvm_neuron.errors import OptionError
from tvm_neuron.explorer import save_node_data


def test_without_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "model_explorer", None)
    monkeypatch.setitem(sys.modules, "model_explorer.node_data_builder", None)
    with pytest.raises(OptionError, match=r"node data needs the package .*: pip install 'tvm-neuron\[explorer\]'"):
        save_node_data(str(tmp_path / "net.so"), str(tmp_path))
    assert not list(tmp_path.iterdir())
