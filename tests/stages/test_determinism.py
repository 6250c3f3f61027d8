"""The same model and options give the same bytes, in processes that order sets and dictionaries of texts otherwise."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.codegen.random_networks import RandomNetwork
from tests.codegen.transformers import Encoder
from tests.onnx_models import make_model

_COMPILE = """
import os
from tvm_neuron.cli.main import main
from tvm_neuron.schedule.expr import Axis
from tvm_neuron.schedule.graph import Block
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.tensor import Tensor

for each in (Axis, Block, Kernel, Tensor):
    each.__hash__ = lambda self: hash((os.environ["PYTHONHASHSEED"], id(self)))
main()
"""
"""Sets of what is told apart by identity have another order, too, which else only large networks give."""


def compiled(model: Path, seed: str, *more: str) -> bytes:
    """What a process of its own makes of the model, without a cache."""
    output = model.with_name(f"{seed}.neff")
    command = ["compile", str(model), "--output", str(output), "--cache", "off", *more]
    environment = os.environ | {"PYTHONHASHSEED": seed}
    subprocess.run([sys.executable, "-c", _COMPILE, *command], check=True, capture_output=True, env=environment)
    return output.read_bytes()


def rolled_sums() -> onnx.ModelProto:
    """Sums of two tensors that are rolled, as in shifted windows, and that nothing reads after them."""
    rng = np.random.default_rng(0)
    weights, nodes = {}, []
    ends = {"at": np.int64([2]), "start": np.int64([0]), "end": np.int64([99]), "axis": np.int64([2])}
    for side in range(8):
        weights[f"w{side}"] = rng.standard_normal((32, 32, 3, 3)).astype(np.float32) / 17
        nodes.append(helper.make_node("Conv", ["x", f"w{side}"], [f"c{side}"], f"conv{side}", pads=[1] * 4))
        for part, bounds in (("a", ("start", "at")), ("b", ("at", "end"))):
            operands = [f"c{side}", *bounds, "axis"]
            nodes.append(helper.make_node("Slice", operands, [f"{part}{side}"], f"slice{part}{side}"))
        nodes.append(helper.make_node("Concat", [f"b{side}", f"a{side}"], [f"r{side}"], f"roll{side}", axis=2))
        if side % 2:
            nodes.append(helper.make_node("Add", [f"r{side - 1}", f"r{side}"], [f"sum{side}"], f"add{side}"))
            nodes.append(helper.make_node("GlobalAveragePool", [f"sum{side}"], [f"y{side}"], f"pool{side}"))
    nodes.append(helper.make_node("Concat", ["y1", "y3", "y5", "y7"], ["y"], "join", axis=1))
    return make_model(nodes, {"x": (1, 32, 12, 12)}, ["y"], weights | ends)


MODELS = {
    "encoder": (Encoder(64, 2, 16).model, ["--target", "inf2", "--compress"]),
    "convolutions": (RandomNetwork(8, operators=9).model, []),
    "sums": (rolled_sums, []),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_two_processes(name: str, tmp_path: Path) -> None:
    make, more = MODELS[name]
    onnx.save(make(), tmp_path / "net.onnx")
    first, second = (compiled(tmp_path / "net.onnx", seed, *more) for seed in ("1", "4711"))
    assert first == second
