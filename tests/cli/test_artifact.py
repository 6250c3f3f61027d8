"""A library becomes a NEFF only where the one program is the whole model."""

from typing import Any

import pytest

from tests.neff.samples import add_relu
from tvm_neuron import neff
from tvm_neuron.cli import artifact
from tvm_neuron.errors import CompileError

MANIFEST: dict[str, Any] = {
    "placement": [{"name": "a", "op": "Add", "where": "neuroncore", "reason": ""}],
    "order": ["neuron_0"],
    "inputs": [{"name": "x"}],
    "outputs": [{"name": "y"}],
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"order": []}, r"the model leaves nothing to run, but a \.neff is a Neuron program: write a library instead"),
        ({"order": ["neuron_0", "neuron_1"]}, r"the model became \[neuron_0, neuron_1\], but a \.neff is one"),
        ({"inputs": [{"name": "z"}]}, r"the model's inputs are z, those that its Neuron program has \[x\]"),
        ({"outputs": [{"name": "y"}, {"name": "c"}]}, r"outputs are y, c, those that its Neuron program has \[y\] \("),
    ],
)
def test_refusals(monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], message: str) -> None:
    install(monkeypatch, MANIFEST | changes)
    with pytest.raises(CompileError, match=message):
        artifact.whole_neff(None, "net")


def test_the_neff_gets_the_models_name_and_placement(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, MANIFEST)
    made = artifact.whole_neff(None, "net")
    (core,) = made.cores
    assert (core.name, core.placement) == ("net", (neff.Placement("a", "Add", "neuroncore", ""),))
    assert core.program == add_relu().program


def install(monkeypatch: pytest.MonkeyPatch, manifest: dict[str, Any]) -> None:
    monkeypatch.setattr(artifact, "manifest", lambda _library: manifest)
    monkeypatch.setattr(artifact, "neffs", lambda _library: {"neuron_0": neff.write(add_relu())})
