"""Every error has a stable code with a page, whose "before" fails with that very code and whose "after" works."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, cli  # noqa: F401 (a fixture)
from tests.docs.test_examples import folder  # noqa: F401 (a fixture)
from tvm_neuron import errors
from tvm_neuron.cli.explain import PAGES, codes
from tvm_neuron.frontend.onnx import checks, needs

# Nobody brings these about at will, or they need a server: see tests/serve.
_WITHOUT_EXAMPLE = {"NCC500", "NCC501", "NCC510", "NCC511", "NCC512", "NCC513", "NCC610", "NCC910", "NCC911", "NCC210"}
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def classes() -> Iterator[type[errors.NeuronError]]:
    for module in (errors, checks, needs):
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, errors.NeuronError):
                yield value


def test_every_class_has_a_code_and_a_page_of_its_own() -> None:
    by_code = {each.code: each for each in set(classes())}
    assert len(by_code) == len(set(classes()))
    assert sorted(by_code) == codes()
    for each in by_code.values():
        assert "code" in vars(each), each


@pytest.mark.parametrize("code", sorted(set(codes()) - _WITHOUT_EXAMPLE))
def test_before_and_after(code: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    for name in ("NEURON_MAX_NUM_INFERS", "NEURON_RT_NUM_CORES", "NEURON_RT_VISIBLE_CORES", "NEURONCORE_GROUP_SIZES"):
        monkeypatch.delenv(name, raising=False)
    before, after = _BLOCK.findall((PAGES / f"{code}.md").read_text())
    with contextlib.chdir(folder):
        with pytest.raises(errors.NeuronError) as caught:
            exec(compile(before, f"{code} before", "exec"), {"__name__": "__main__"})
        assert caught.value.code == code
        exec(compile(after, f"{code} after", "exec"), {"__name__": "__main__"})


def test_explain(cli: Cli) -> None:  # noqa: F811
    assert cli("explain", "ncc101")[1] == (PAGES / "NCC101.md").read_text()
    assert "NCC400: an operator can't be on the NeuronCore" in cli("explain")[1]
    code, _, told = cli("explain", "NCC999")
    assert code == 1
    assert "error NCC300: there is no error code 'NCC999'; the codes are NCC001, " in told
