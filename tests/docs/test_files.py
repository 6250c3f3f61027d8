"""What all files keep to: links resolve, published blocks are filled, nothing names a place outside the project."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.docs.markdown import FILES, ROOT, blocks, links
from tvm_neuron.neff import MAJOR, MINOR
from tvm_neuron.runtime import VERSION

_OUTSIDE = re.compile(
    "|".join(["/wo" + "rk/", r"\.libr" + "ary/", "farm-" + "(studio|bench)", "`(iss" + "ues|dupli" + "cates)\\b"])
)


def committed() -> list[Path]:
    """The files of the project, new ones included."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in done.stdout.splitlines() if (ROOT / name).is_file()]


def test_nothing_names_a_place_outside_the_project() -> None:
    files = committed()
    assert len(files) > 100
    texts = {path: path.read_bytes().decode(errors="ignore") for path in files}
    assert [str(path) for path, text in texts.items() if _OUTSIDE.search(text)] == []


def test_the_search_finds_something() -> None:
    assert _OUTSIDE.search("in /wo" + "rk/main")
    assert not _OUTSIDE.search("issues of the network, at work/main")


@pytest.mark.parametrize("file_name", FILES)
def test_links_resolve(file_name: str) -> None:
    inside = [link for link in links(file_name) if not link.startswith("https://")]
    missing = [link for link in inside if not ((ROOT / file_name).parent / link.partition("#")[0]).exists()]
    assert missing == []


def test_every_document_is_in_the_map_of_the_readme() -> None:
    documents = {str(path.relative_to(ROOT)) for pattern in ("*.md", "docs/*.md") for path in ROOT.glob(pattern)}
    assert documents - {"README.md"} - {path for path in documents if path.startswith(".")} <= set(links("README.md"))
    assert documents - {path for path in documents if path.startswith(".")} == set(FILES)


def test_every_document_is_in_the_pages() -> None:
    listed = set((ROOT / "docs/index.rst").read_text().split())
    assert {path.stem for path in (ROOT / "docs").glob("*.md")} <= listed


def test_the_changelog_has_this_version() -> None:
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert newest[1] == VERSION


def test_the_demo_is_published() -> None:
    found = {block.mark: block.text for block in blocks("README.md")}
    assert "relative L2 error against onnxruntime" in found["demo"]


def test_the_licence() -> None:
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License" in text
    assert "END OF TERMS AND CONDITIONS" in text


def test_the_manual_of_the_container_tells_its_version() -> None:
    assert f"\nVersion {MAJOR}.{MINOR}. " in (ROOT / "docs/neff.md").read_text()
