"""Without torch or jax, a sentence says what to install; models of them are recognised without importing them."""

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import sys
sys.modules["torch"] = None  # what importing it finds where it is not installed
sys.modules["tensorflow"] = sys.modules["tf2onnx"] = None
sys.modules["onnxscript"] = sys.modules["jaxlib"] = sys.modules["jax"] = None
import tvm_neuron
for line in sys.argv[1:]:
    try:
        exec(line)
    except Exception as error:
        print(type(error).__name__, error)
    else:
        print("nothing was said")
"""
TORCH = ("tvm_neuron.compile('model.pt2')", "import tvm_neuron.torch")
JAX = (
    "from tvm_neuron.frontend import xla; xla.parse('module {}')",
    "import tvm_neuron.jax; tvm_neuron.jax.compile(len, 3)",
)
TENSORFLOW = ("tvm_neuron.compile('net.keras')", "from tvm_neuron import relay; relay.frontend.from_keras(3)")


def test_a_sentence_says_what_to_install(tmp_path: Path) -> None:
    for name in ("model.pt2", "net.keras"):  # of a file that is not there, that would be said
        (tmp_path / name).touch()
    command = [sys.executable, "-c", SCRIPT, *TORCH, *JAX, *TENSORFLOW, "tvm_neuron.compile(3)"]
    *said, last = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout.splitlines()
    assert len(said) == len(TORCH) + len(JAX) + len(TENSORFLOW)
    assert all("pip install 'tvm-neuron[torch]'" in line for line in said[: len(TORCH)])
    assert all("pip install 'tvm-neuron[jax]'" in line for line in said[len(TORCH) : -len(TENSORFLOW)])
    assert all("pip install 'tvm-neuron[tensorflow]'" in line for line in said[-len(TENSORFLOW) :])
    assert last.startswith("ModelError tvm_neuron.compile takes the path of a model")
