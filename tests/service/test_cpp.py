"""The example in C++ is built and runs what relay.build and tvm.compile made, to the same bytes as Python."""

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest
import tvm

from tvm_neuron import relay

EXAMPLE = Path(__file__).parents[2] / "examples" / "cpp"
HAS_EMBEDDING = bool(sysconfig.get_config_var("Py_ENABLE_SHARED")) and shutil.which("g++") is not None


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("cpp") / "run_model"
    command = ["make", "--silent", "-C", str(EXAMPLE), f"PYTHON={sys.executable}", f"OUT={made}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return made


@pytest.mark.slow
@pytest.mark.skipif(not HAS_EMBEDDING, reason="this Python has no shared library to embed")
def test_the_same_bytes_as_in_python(program: Path, library: Path, tmp_path: Path) -> None:
    x = np.random.default_rng(3).standard_normal((4, 64)).astype(np.float32)
    x.tofile(tmp_path / "x.bin")
    files = [str(path) for path in (library, tmp_path / "x.bin", tmp_path / "y.bin")]
    done = subprocess.run([str(program), *files, "4", "64"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    executor = relay.graph_executor.GraphModule(tvm.runtime.load_module(str(library))["default"](tvm.cpu()))
    executor.run(x=x)
    assert (tmp_path / "y.bin").read_bytes() == executor.get_output(0).numpy().tobytes()
    (tmp_path / "y.bin").unlink()
    shutil.copy(library, tmp_path / "model.so")
    names = ["model.so", "x.bin", "y.bin", "4", "64"]
    done = subprocess.run([str(program), *names], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "y.bin").read_bytes() == executor.get_output(0).numpy().tobytes()
    failed = subprocess.run([str(program), *files, "5", "64"], capture_output=True, text=True, check=False)
    assert failed.returncode == 1
    assert "does not hold 1280 bytes" in failed.stderr
