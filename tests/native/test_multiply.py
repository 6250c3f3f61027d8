"""One product: the same bits by the code for each kind of processor."""

import shutil
import subprocess
from pathlib import Path

import pytest

import tvm_neuron.native

SOURCES = Path(tvm_neuron.native.__file__).parent


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
def test_all_kinds_give_the_same_bits(tmp_path: Path) -> None:
    program, source = tmp_path / "multiply", Path(__file__).parent / "multiply.cc"
    options = ["-std=c++17", "-O3", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror", f"-I{SOURCES}"]
    subprocess.run(["g++", *options, source, "-o", program], check=True)
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
