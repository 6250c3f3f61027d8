"""The wheel: one for all versions of Python, since nothing in it asks for a certain one; what its metadata say."""

import re
import runpy
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tvm_neuron import native, runtime

ROOT = Path(__file__).parents[2]


class BdistWheel:
    """As setuptools' own command answers where there are libraries to build."""

    def get_tag(self) -> tuple[str, str, str]:
        return "cp311", "cp311", "linux_x86_64"


@pytest.fixture
def setup(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What setup.py gives to a setuptools that only listens."""
    given: dict[str, Any] = {}
    modules = {
        "setuptools": {
            "Extension": lambda name, sources, **_: name,
            "find_packages": lambda include: include,
            "setup": lambda **words: given.update(words),
        },
        "setuptools.command.build_ext": {"build_ext": object},
        "setuptools.command.bdist_wheel": {"bdist_wheel": BdistWheel},
    }
    for name, members in modules.items():
        module = ModuleType(name)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, name, module)
    runpy.run_path(str(ROOT / "setup.py"))
    return given


def test_its_tag_names_the_platform_alone(setup: dict[str, Any]) -> None:
    assert setup["cmdclass"]["bdist_wheel"]().get_tag() == ("py3", "none", "linux_x86_64")


@pytest.mark.parametrize("room", [native, runtime])
def test_its_libraries_use_nothing_of_pythons_interface(room: ModuleType) -> None:
    (library,) = Path(room.__file__ or "").parent.glob("*.so")
    assert re.findall(rb"\0(_?Py[A-Z]\w+)\0", library.read_bytes()) == []
    assert re.findall(rb"\0(libstdc\+\+\S*)\0", library.read_bytes())  # such names do stand there between zeros


def test_its_metadata(setup: dict[str, Any]) -> None:
    assert setup["long_description"] == (ROOT / "README.md").read_text("utf-8")
    assert setup["long_description_content_type"] == "text/markdown"
    assert setup["classifiers"]
    text = "".join(path.read_text("utf-8") for path in (ROOT / "README.md", ROOT / "NOTICE"))
    assert all(url in text for url in setup["project_urls"].values())  # none is invented
