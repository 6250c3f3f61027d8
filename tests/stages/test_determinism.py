"""The same model and options give the same bytes, in processes that order sets and dictionaries of texts otherwise."""

import os
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

from tests.codegen.random_networks import RandomNetwork
from tests.codegen.transformers import Encoder

_COMPILE = "from tvm_neuron.cli.main import main; main()"


def compiled(model: Path, seed: str, *more: str) -> bytes:
    """What a process of its own makes of the model, without a cache."""
    output = model.with_name(f"{seed}.neff")
    command = ["compile", str(model), "--output", str(output), "--cache", "off", *more]
    environment = os.environ | {"PYTHONHASHSEED": seed}
    subprocess.run([sys.executable, "-c", _COMPILE, *command], check=True, capture_output=True, env=environment)
    return output.read_bytes()


@pytest.mark.parametrize("name", ["encoder", "convolutions"])
def test_two_processes(name: str, tmp_path: Path) -> None:
    models = {"encoder": Encoder(64, 2, 16), "convolutions": RandomNetwork(8, operators=9)}
    onnx.save(models[name].model(), tmp_path / "net.onnx")
    for more in ([], ["--target", "inf2", "--compress"]):
        first, second = (compiled(tmp_path / "net.onnx", seed, *more) for seed in ("1", "4711"))
        assert first == second
