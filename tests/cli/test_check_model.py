"""neuron-cc check-model and the words of the command as a whole."""

import json
import subprocess
from pathlib import Path

from tests.cli.conftest import Cli


def test_of_a_mixed_model(cli: Cli, mixed_onnx_file: Path) -> None:
    code, said, told = cli("check-model", mixed_onnx_file, "--show-names")
    assert (code, told) == (0, "")
    assert "operators: 2 neuroncore, 1 cpu; 66.7 % of those that run are on inf1" in said
    assert "It needs one NeuronCore" in said
    assert "find" in said
    assert "NonZero" in said


def test_as_json(cli: Cli, mixed_onnx_file: Path) -> None:
    code, said, _ = cli("check-model", mixed_onnx_file, "--json", "--target", "inf2")
    facts = json.loads(said)
    assert code == 0
    assert (facts["target"], facts["percent_on_neuroncore"], facts["cores_needed"]) == ("inf2", 66.7, 1)
    assert facts["operators"] == {"neuroncore": 2, "cpu": 1, "compile time": 0}
    assert facts["weight_bytes_in_bf16"] == 64
    assert [row["name"] for row in facts["on_cpu"]] == ["find"]


def test_help_teaches(cli: Cli) -> None:
    assert "exit codes: 0 done; 1 refused" in cli("--help")[1]
    assert "neuron-cc compile yolo.onnx --output yolo.so" in cli("compile", "--help")[1]


def test_completion_is_a_script_that_bash_takes(cli: Cli) -> None:
    code, script, _ = cli("--print-completion", "bash")
    assert code == 0
    asked = 'COMP_WORDS=(neuron-cc check); COMP_CWORD=1; _shtab_neuron_cc; echo "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", f"{script}\n{asked}"], capture_output=True, text=True, check=True)
    assert "check-model" in done.stdout
