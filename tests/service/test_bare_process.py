"""A process that only runs libraries needs neither onnx, which reads models, nor rich, which prints tables."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.service.conftest import WEIGHTS

SCRIPT = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("onnx", "rich", "shtab"):
            raise ImportError(f"{name} is not for those who only run")

sys.meta_path.insert(0, Blocked())
import numpy as np, tvm
import tvm_neuron.runtime.service
library = tvm.runtime.load_module(sys.argv[1])
with tvm_neuron.runtime.service.Service(environment={}) as service:
    model = service.load(library)
    model.start()
    np.savez(sys.argv[3], **model.infer({"x": np.load(sys.argv[2])}))
print(tvm_neuron.runtime.report(library).headline())
"""


@pytest.mark.slow
def test_running_needs_neither_onnx_nor_rich(library: Path, tmp_path: Path) -> None:
    x = np.random.default_rng(3).standard_normal((4, 64)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    words = [sys.executable, "-c", SCRIPT, str(library), str(tmp_path / "x.npy"), str(tmp_path / "y.npz")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("operators: 1 cpu, 1 neuroncore; ")
    with np.load(tmp_path / "y.npz") as found:
        bound = 2.0**-7 * (np.abs(x).astype(np.float64) @ np.abs(WEIGHTS))  # both operands are rounded to bfloat16
        assert (np.abs(found["y"] - x.astype(np.float64) @ WEIGHTS) <= bound).all()
        np.testing.assert_array_equal(found["places"], np.nonzero(x))
