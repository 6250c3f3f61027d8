"""The library is there; where it isn't, the model says once what that costs and what to do, and runs on NumPy."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tvm_neuron.native import assign, library, native

ADVICE = "build it with 'python setup.py build_ext --inplace', or install tvm_neuron again"


@pytest.fixture
def anew() -> Iterator[None]:
    native.cache_clear()
    yield
    native.cache_clear()


def test_the_library_is_built() -> None:
    assert native() is not None, "build it: make venv, or python setup.py build_ext --inplace"


@pytest.mark.usefixtures("anew")
@pytest.mark.parametrize("content", [None, b"", b"not a library"])
def test_a_missing_library_is_named_once(
    content: bytes | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "lib.so"
    if content is not None:
        file.write_bytes(content)
    monkeypatch.setattr(library, "_LIBRARY", file)
    with pytest.warns(RuntimeWarning, match=f"without their C.. library, several times slower: .*lib.so.*; {ADVICE}"):
        assert native() is None
    target = np.zeros((100, 100), np.float32)
    assign(target, np.ones(100, np.float32))  # no second warning, which would be an error
    assert np.all(target == 1)


@pytest.mark.usefixtures("anew")
def test_a_library_of_other_sources_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "_INTERFACE", -1)
    with pytest.warns(RuntimeWarning, match=f"libneuron_native.so was built from other sources; {ADVICE}"):
        assert native() is None
