"""Without torch or jax, a sentence says what to install; models of them are recognised without importing them."""

import subprocess
import sys

SCRIPT = """
import sys
sys.modules["torch"] = None  # what importing it finds where it is not installed
sys.modules["onnxscript"] = sys.modules["jaxlib"] = sys.modules["jax"] = None
import tvm_neuron
try:
    {}
except Exception as error:
    print(type(error).__name__, error)
"""


def said(line: str) -> str:
    command = [sys.executable, "-c", SCRIPT.format(line)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_a_sentence_says_what_to_install() -> None:
    for line in ("tvm_neuron.compile('model.pt2')", "tvm_neuron.compile(len, 3)", "import tvm_neuron.torch"):
        assert "pip install 'tvm-neuron[torch]'" in said(line)
    text = "from tvm_neuron.frontend import xla; xla.parse('module {}')"
    for line in (text, "import tvm_neuron.jax; tvm_neuron.jax.compile(len, 3)"):
        assert "pip install 'tvm-neuron[jax]'" in said(line)
    assert said("tvm_neuron.compile(3)").startswith("ModelError tvm_neuron.compile takes the path of a model")
