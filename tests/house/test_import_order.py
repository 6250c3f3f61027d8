"""Imports go upward only: a room may import the rooms before it in the list, never one after it.

Nor do files import each other, in a circle of any length, inside of functions either.
The plug-in package `schedules/` may import `tvm_neuron.errors`, `.hw` and `.schedule` only, and nothing imports it.
"""

import ast
from collections.abc import Iterator, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ORDER = (
    "errors", "jobs", "hw", "native", "isa", "program", "neff", "cache", "sim", "spmd", "profile", "runtime", "serve",
    "frontend", "partition", "schedule", "allocation", "codegen", "nki", "bundle", "build", "operators", "relay",
    "compile_model", "numerics", "sweep", "torch", "jax", "cli", "tensorflow", "explorer", "tvmc",
)  # fmt: skip
PLUG_IN, MAY_PLUG_IN_IMPORT = "tvm_neuron_schedules", ("errors", "hw", "schedule")


def violations(path: Path, package: str, source: str) -> list[str]:
    """Imports in one file of `package` ("tvm_neuron.hw", "tvm_neuron_schedules", ...) that the order forbids."""
    found = []
    for line, name in imported(ast.parse(source), package):
        top, _, rest = name.partition(".")
        room = rest.partition(".")[0]
        own = package.partition(".")[2].partition(".")[0]
        if package == "tvm_neuron" and path.stem != "__init__":
            own = path.stem
        if package.split(".")[0] == PLUG_IN:
            bad = top == "tvm_neuron" and room not in MAY_PLUG_IN_IMPORT
        elif not own:  # tvm_neuron/__init__.py: the front, which may import any room
            bad = top == PLUG_IN
        else:
            is_above = room not in ORDER or ORDER.index(room) > ORDER.index(own)
            bad = top == PLUG_IN or (top == "tvm_neuron" and is_above)
        if bad:
            found.append(f"{path}:{line}: {own or package} may not import {name}")
    return found


def imported(tree: ast.AST, package: str) -> Iterator[tuple[int, str]]:
    """(line, full dotted name) of everything imported anywhere in a file, inside functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")
            base = parents[: len(parents) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                yield node.lineno, f"{module}.{alias.name}"
        elif isinstance(node, ast.Call) and _is_import_call(node):
            argument = node.args[0] if node.args else None
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                yield node.lineno, argument.value


def _is_import_call(node: ast.Call) -> bool:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name in ("import_module", "__import__")


def sources() -> list[tuple[Path, str]]:
    """(file, package it belongs to) of everything that is shipped."""
    files = []
    for folder, package in (("tvm_neuron", "tvm_neuron"), ("schedules", PLUG_IN)):
        for path in sorted((ROOT / folder).rglob("*.py")):
            inner = path.parent.relative_to(ROOT / folder).parts
            files.append((path, ".".join((package, *inner))))
    return files


def test_imports_go_upward_only() -> None:
    files = sources()
    assert len(files) > 40
    assert [line for path, package in files for line in violations(path, package, path.read_text())] == []


def circles(files: Sequence[tuple[str, str, str]]) -> list[str]:
    """The files, given as (stem, package, source), that import each other in a circle, if any do."""
    names = [package if stem == "__init__" else f"{package}.{stem}" for stem, package, _ in files]
    graph: dict[str, set[str]] = {}
    for name, (_, package, source) in zip(names, files, strict=True):
        found = {line for _, line in imported(ast.parse(source), package)}
        graph[name] = {each if each in names else each.rpartition(".")[0] for each in found} - {name}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_nothing_imports_in_a_circle() -> None:
    assert circles([(path.stem, package, path.read_text()) for path, package in sources()]) == []


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("from tvm_neuron.cli import b", "from tvm_neuron.cli.a import f"),
        ("from . import b", "def f():\n    import tvm_neuron.cli.a"),
    ],
)
def test_planted_circles_are_caught(first: str, second: str) -> None:
    package = "tvm_neuron.cli"
    assert circles([("__init__", package, ""), ("a", package, first), ("b", package, "x = 1")]) == []
    assert len(circles([("__init__", package, ""), ("a", package, first), ("b", package, second)])) == 3


def test_every_room_has_its_place() -> None:
    rooms = {p.stem for p in (ROOT / "tvm_neuron").iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()}
    assert rooms - {"__init__"} <= set(ORDER)


@pytest.mark.parametrize(
    ("file", "package", "source"),
    [
        ("tvm_neuron/hw/a.py", "tvm_neuron.hw", "from tvm_neuron.isa import Tile"),
        ("tvm_neuron/hw/a.py", "tvm_neuron.hw", "import tvm_neuron.isa.tile as t"),
        ("tvm_neuron/hw/a.py", "tvm_neuron.hw", "from tvm_neuron import isa"),
        ("tvm_neuron/hw/a.py", "tvm_neuron.hw", "from ..isa import Tile"),
        ("tvm_neuron/hw/a.py", "tvm_neuron.hw", "from .. import isa"),
        ("tvm_neuron/hw/sub/a.py", "tvm_neuron.hw.sub", "from ...isa.tile import Tile"),
        ("tvm_neuron/errors.py", "tvm_neuron", "from .hw import Device"),
        ("tvm_neuron/build.py", "tvm_neuron", "from tvm_neuron.relay import build"),
        ("tvm_neuron/hw/a.py", "tvm_neuron.hw", "def f():\n    if True:\n        from tvm_neuron.isa import Tile"),
        ("tvm_neuron/hw/a.py", "tvm_neuron.hw", "import importlib\nimportlib.import_module('tvm_neuron.cli')"),
        ("tvm_neuron/hw/a.py", "tvm_neuron.hw", "try:\n    import tvm_neuron.nowhere\nexcept ImportError:\n    pass"),
        ("tvm_neuron/cli/a.py", "tvm_neuron.cli", "import tvm_neuron_schedules"),
        ("tvm_neuron/__init__.py", "tvm_neuron", "from tvm_neuron_schedules import RULES"),
        ("schedules/a.py", PLUG_IN, "from tvm_neuron.codegen import emit"),
        ("schedules/sub/a.py", f"{PLUG_IN}.sub", "def f():\n    import tvm_neuron.isa"),
        ("schedules/a.py", PLUG_IN, "from tvm_neuron import sim"),
    ],
)
def test_planted_violations_are_caught(file: str, package: str, source: str) -> None:
    assert len(violations(Path(file), package, source)) == 1


@pytest.mark.parametrize(
    ("file", "package", "source"),
    [
        ("tvm_neuron/isa/a.py", "tvm_neuron.isa", "import tvm\nfrom tvm_neuron.hw import Device\nfrom . import tile"),
        ("tvm_neuron/isa/a.py", "tvm_neuron.isa", "from tvm_neuron.isa.tile import Tile\nfrom ..errors import x"),
        ("tvm_neuron/build.py", "tvm_neuron", "from tvm_neuron.codegen import byoc"),
        ("tvm_neuron/__init__.py", "tvm_neuron", "from tvm_neuron.relay import build"),
        (
            "schedules/a.py",
            PLUG_IN,
            "from tvm_neuron.schedule import Rule\nfrom . import conv\nimport tvm_neuron_schedules",
        ),
    ],
)
def test_what_is_allowed_passes(file: str, package: str, source: str) -> None:
    assert violations(Path(file), package, source) == []
