"""The examples of docs/jax.md run as they stand there, and its list of operators is that of the converters."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.markdown import ROOT, blocks
from tvm_neuron.frontend.xla.operators import CONVERTERS

EXAMPLES = [block.text for block in blocks("docs/jax.md") if block.mark == "jax"]


@pytest.mark.jax
@pytest.mark.parametrize(("number", "said"), [(0, "us on inf2"), (1, "all_reduce of 4 cores: 6144 bytes sent by each")])
def test_example(number: int, said: str, tmp_path: Path) -> None:
    assert len(EXAMPLES) == 2
    (tmp_path / "example.py").write_text(EXAMPLES[number])
    done = subprocess.run([sys.executable, "example.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert said in done.stdout


def listed() -> str:
    """The names of all converters, those of a file in a row."""
    rows: dict[str, list[str]] = {}
    for name, convert in CONVERTERS.items():
        rows.setdefault(convert.__module__.rpartition(".")[2].replace("_", " "), []).append(name)
    return "".join(f"* **{row}**: {', '.join(f'`{name}`' for name in sorted(names))}\n" for row, names in rows.items())


@pytest.mark.jax
def test_operators_are_listed() -> None:
    (found,) = re.findall("<!-- operators -->\n(.*)<!-- /operators -->", (ROOT / "docs/jax.md").read_text(), re.DOTALL)
    assert found == listed()
