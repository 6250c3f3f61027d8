"""What a compile takes at most, in a process of its own: models larger than the interpreter and TVM."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.onnx_models import make_model

_COMPILE = """
import sys
from pathlib import Path
import tvm_neuron.codegen.function, tvm_neuron.relay
from tvm_neuron.cli.main import main

def kilobytes(name):
    return int(next(x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith(name)).split()[1])

before = kilobytes("VmRSS")
code = main(sys.argv[1:])
print((kilobytes("VmHWM") - before) * 1024)
sys.exit(code)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_a_compile_takes_less_than_three_times_the_weights(tmp_path: Path) -> None:
    rng, width, layers = np.random.default_rng(0), 2048, 8
    weights = {f"w{i}": rng.standard_normal((width, width), dtype=np.float32) for i in range(layers)}
    names = ["x", *(f"x{i + 1}" for i in range(layers))]
    nodes = [helper.make_node("MatMul", [names[i], f"w{i}"], [names[i + 1]], f"m{i}") for i in range(layers)]
    onnx.save(make_model(nodes, {"x": [8, width]}, [f"x{layers}"], weights), tmp_path / "net.onnx")
    words = ["compile", tmp_path / "net.onnx", "--output", tmp_path / "net.neff", "--verbose", "error"]
    told = subprocess.run([sys.executable, "-c", _COMPILE, *words], capture_output=True, text=True, check=True).stdout
    assert int(told.splitlines()[-1]) < 3 * sum(array.nbytes for array in weights.values())


@pytest.mark.parametrize(("first", "told"), [("", "found"), ("end_quickly(); end_quickly()", "")])
def test_cycles_are_not_looked_for_when_the_process_ends(first: str, told: str) -> None:
    code = f"""
from tvm_neuron.cli.memory import end_quickly
{first}
class Cycle:
    def __del__(self):
        print("found")
cycle = Cycle()
cycle.itself = cycle
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == told
