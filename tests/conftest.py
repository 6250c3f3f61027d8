"""What all tests share: golden files, renewed by `pytest --update-golden`; no cache; memory that begins as NaN."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

from tvm_neuron.codegen.collector import seldom_collected

# How long an example takes says nothing on a machine that others use too. The same examples each time, so that a change
# is judged by what it changes; others with `--hypothesis-profile fresh`, and by `benchmarks.random_models`.
settings.register_profile("fresh", deadline=None)
settings.register_profile("tvm_neuron", deadline=None, derandomize=True)
settings.load_profile("tvm_neuron")

_GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(autouse=True)
def _no_cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whatever a test compiles is compiled; those of the cache give theirs a folder. No bundle is left in the home."""
    monkeypatch.setenv("NEURON_CC_CACHE", "off")
    # In other processes, too, a defect ends a test. By the warnings' first words: Python reads this before any package.
    monkeypatch.setenv("PYTHONWARNINGS", "error:on the CPU,error:not taken for")
    monkeypatch.setenv("NEURON_CC_BUNDLES", str(tmp_path_factory.getbasetemp() / "bundles"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--update-golden`."""
    parser.addoption("--update-golden", action="store_true", help="write what the golden files should hold into them")


_COMPILING = (
    "codegen",
    "frontend",
    "models",
    "mxnet",
    "pipeline",
    "relax_modules",
    "relay_language",
    "runtime",
    "stages",
    "tvmc",
)
"""Rooms of which nearly each case is a model that is built and run."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of the cases of one test that builds models the first and the last are run, many not.

    Networks by name are all run. What takes several minutes alone begins first, so that other processes have the rest
    to do meanwhile.
    """
    items.sort(key=lambda item: item.path.name != "test_conformance.py")
    cases: dict[tuple[str, bool], list[pytest.Item]] = {}
    for item in items:
        room, is_slow = item.path.relative_to(Path(__file__).parent).parts[0], bool(item.get_closest_marker("slow"))
        if room in _COMPILING and not (room == "models" and is_slow):
            cases.setdefault((item.nodeid.partition("[")[0], is_slow), []).append(item)
    for alike in cases.values():
        for item in alike[1:-1]:
            item.add_marker("many")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden(name, text)` holds `text` to the file tests/golden/<name>."""

    def check(name: str, text: str) -> None:
        path = _GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        assert path.exists(), f"{path} is missing; write it with pytest --update-golden"
        assert text == path.read_text(), f"{path} differs; if that is meant, run pytest --update-golden"

    return check


def _poisoned(make: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    def made(*args: Any, **options: Any) -> np.ndarray:
        found = make(*args, **options)
        if found.dtype.kind == "b":
            found.fill(True)
        elif not found.dtype.hasobject and found.size:
            found.ravel("K").view(np.uint8)[...] = 0xFF  # NaN of any float, -1 or the largest of integers
        return found

    return made


@pytest.fixture(autouse=True, scope="session")
def _unwritten_memory_is_nan() -> Iterator[None]:
    """What NumPy leaves unwritten holds no numbers by chance, so that who reads it is found out."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("empty", "empty_like"):
            patch.setattr(np, name, _poisoned(getattr(np, name)))
        yield


@pytest.fixture(autouse=True, scope="session")
def _cycles_are_seldom_looked_for() -> Iterator[None]:
    """As while the command compiles; in a process of many tests, with all that they leave, it takes more than there."""
    with seldom_collected():
        yield
