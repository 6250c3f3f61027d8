"""neuron-cc reads PyTorch's files: exported programs as they are, scripts with the shapes of their inputs."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.torch.networks import net, relative_error
from tvm_neuron.cli.main import main

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]  # torch warns of itself


def test_programs_and_scripts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, x = net()
    torch.export.save(torch.export.export(model.layers, (x,)), tmp_path / "program.pt2")
    torch.jit.save(torch.jit.trace(model.layers, x), tmp_path / "script.pt")
    np.savez(tmp_path / "x.npz", x=x.numpy())
    config = json.dumps({"inputs": {"x": [list(x.shape), "float32"]}})
    with torch.no_grad():
        right = model.layers(x)
    for name, more in (("program.pt2", ["--framework", "pytorch"]), ("script.pt", ["--io-config", config])):
        out = str(tmp_path / f"{name}.neff")
        assert main(["compile", str(tmp_path / name), "--output", out, "--cache", "off", *more]) == 0
        results = str(tmp_path / "y.npz")
        input_name = "x" if more[0] == "--io-config" else "input"
        np.savez(tmp_path / "x.npz", **{input_name: x.numpy()})
        assert main(["run", out, "--input", str(tmp_path / "x.npz"), "--output", results]) == 0
        (found,) = np.load(results).values()
        assert relative_error(torch.from_numpy(found), right) < 2.0**-6
        assert main(["check-model", str(tmp_path / name), *more]) == 0
    capsys.readouterr()
    assert main(["compile", str(tmp_path / "script.pt"), "--cache", "off"]) == 1
    assert "holds a script, which does not know the shapes of its inputs" in capsys.readouterr().err
