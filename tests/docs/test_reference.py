"""The reference has a page for every package that users import, with all the names that it gives them."""

import ast
import re

import pytest

from tests.docs.markdown import ROOT
from tests.house.test_import_order import ORDER

INNER = {
    "native", "isa", "cache", "spmd", "frontend", "partition", "allocation", "codegen", "bundle", "build", "operators",
    "compile_model", "cli",
}  # fmt: skip
"""Rooms that only others of ours import; docs/isa.md has the instructions, docs/cli.md the commands."""
ROOMS = sorted(set(ORDER) - INNER)
PAGES = "\n".join(page.read_text() for page in (ROOT / "docs" / "api").glob("*.rst"))
NAMES = set(re.findall(r"^\.\. auto\w+:: tvm_neuron\.(\S+)$", PAGES, re.MULTILINE))


def given(package: str) -> set[str]:
    """`__all__` of a package, read and not imported: extras may be missing."""
    file = ROOT / "tvm_neuron" / package / "__init__.py"
    body = ast.parse(file.read_text()).body if file.exists() else []
    lists = [each.value for each in body if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == "__all__"]
    return {name for each in lists for name in ast.literal_eval(each)}


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_room_is_there(room: str) -> None:
    assert any(name.split(".")[0] == room for name in NAMES), f"no page of docs/api has anything of tvm_neuron.{room}"


@pytest.mark.parametrize("room", [room for room in ROOMS if room not in NAMES and room != "relay"])
def test_all_that_a_room_gives_is_there(room: str) -> None:  # of Relay: tests/relay holds docs/relay.md
    missing = {name for name in given(room) if not any(f"{known}.".startswith(f"{room}.{name}.") for known in NAMES)}
    assert not missing, f"no page of docs/api has {missing} of tvm_neuron.{room}"


def test_all_that_the_front_gives_is_there() -> None:
    assert given("") - NAMES <= {"__version__", *ROOMS, "compare"}  # the last is that of `numerics`


def test_what_is_given_is_found() -> None:
    assert "trace" in given("torch")
    assert len(NAMES) > 30
