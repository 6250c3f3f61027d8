"""The rooms around the runtime, replaced."""

import pytest

from tests import fakes


@pytest.fixture(autouse=True)
def _fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    fakes.install(monkeypatch)
