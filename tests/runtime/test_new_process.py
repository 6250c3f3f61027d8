"""An exported library runs in a new process that imports the runtime alone, and no compiler."""

import subprocess
import sys
from pathlib import Path

import numpy as np

from tests.onnx_models import mixed_model, reference
from tvm_neuron import relay

ROOT = Path(__file__).parents[2]
SCRIPT = """
import sys
import numpy as np, tvm
import tvm_neuron.runtime
compiler = [n for n in sys.modules if n.split(".")[0] == "tvm_neuron" and n.split(".")[1:2] and
            n.split(".")[1] in ("frontend", "partition", "schedule", "allocation", "codegen", "build", "relay")]
assert not compiler, compiler
import pytest
from tests import fakes
fakes.install(pytest.MonkeyPatch())
library = tvm.runtime.load_module(sys.argv[1])
executor = library["default"](tvm.cpu(0))
executor.run(x=np.load(sys.argv[2]))
np.save(sys.argv[3], executor.get_output(0).numpy())
print(tvm_neuron.runtime.manifest(library)["order"], list(tvm_neuron.runtime.neffs(library)))
"""


def test_load_and_run(tmp_path: Path) -> None:
    model = mixed_model()
    mod, params = relay.frontend.from_onnx(model)
    relay.build(mod, target="neuron", params=params).export_library(tmp_path / "lib.so")
    x = np.random.default_rng(0).standard_normal((1, 3, 8, 8)).astype("float32")
    np.save(tmp_path / "x.npy", x)
    files = [str(tmp_path / name) for name in ("lib.so", "x.npy", "y.npy")]
    command = [sys.executable, "-c", SCRIPT, *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "['neuron_0', 'cpu:topk', 'neuron_1'] ['neuron_0', 'neuron_1']"
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), reference(model, {"x": x})[0], rtol=1e-5, atol=1e-5)
    assert {path.name for path in tmp_path.iterdir()} == {"lib.so", "x.npy", "y.npy"}
