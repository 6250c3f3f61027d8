"""neuron-cc compile --bucket: several shapes in one library."""

import json
from pathlib import Path

import numpy as np
import onnx
from onnx import helper

from tests.cli.conftest import Cli
from tests.onnx_models import make_model

WEIGHTS = np.random.default_rng(0).standard_normal((8, 16)).astype(np.float32)


def of_rows(rows: int) -> str:
    return json.dumps({"inputs": {"x": [[rows, 8], "float32"]}})


def test_each_shape_runs_and_is_reported(cli: Cli, tmp_path: Path) -> None:
    model, out = tmp_path / "m.onnx", tmp_path / "m.so"
    node = helper.make_node("MatMul", ["x", "w"], ["y"], "m")
    onnx.save(make_model([node], {"x": ["n", 8]}, ["y"], {"w": WEIGHTS}), model)
    code, said, told = cli("compile", model, "--io-config", of_rows(2), "--bucket", of_rows(5), "--output", out)
    assert code == 0, told
    assert "\n  bucket 1: operators: 1 neuroncore" in said
    for rows in (2, 5):
        x = np.random.default_rng(rows).standard_normal((rows, 8)).astype(np.float32)
        np.savez(tmp_path / "x.npz", x=x)
        code, _, told = cli("run", out, "--input", tmp_path / "x.npz", "--output", tmp_path / "y.npz")
        assert code == 0, told
        bound = 2.0**-7 * (np.abs(x) @ np.abs(WEIGHTS))  # both operands are rounded to bf16
        with np.load(tmp_path / "y.npz") as found:
            assert (np.abs(found["y"] - x.astype(np.float64) @ WEIGHTS) <= bound).all()
    carried = [
        json.loads(cli("report", out, "--json", "--bucket", number)[1])["transfers"][0]["bytes"] for number in (0, 1)
    ]
    assert carried == [2 * 8 * 4, 5 * 8 * 4]
    assert "the library has no bucket 2: its buckets are 0 to 1" in cli("report", out, "--bucket", 2)[2]


def test_a_neff_has_one_set_of_shapes(cli: Cli, onnx_file: Path, neff_file: Path, tmp_path: Path) -> None:
    code, _, told = cli("compile", onnx_file, "--bucket", of_rows(5), "--output", tmp_path / "m.neff")
    assert (code, "--bucket: a .neff has one set of shapes; write a library" in told) == (1, True)
    told = cli("report", neff_file, "--bucket", 1)[2]
    assert "--bucket 1: a .neff has one set of shapes; leave the option out" in told
