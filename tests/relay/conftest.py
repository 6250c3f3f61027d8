"""The rooms below the front door, replaced."""

import pytest

from tests import fakes


@pytest.fixture(autouse=True)
def _fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    fakes.install(monkeypatch)
