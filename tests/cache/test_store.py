"""Store: what was kept comes back whole, or not at all; processes side by side, damage, a full cache."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tvm_neuron.cache import Store, fingerprint, open_store
from tvm_neuron.cache.fingerprint import compiler
from tvm_neuron.errors import OptionError

cached_fingerprint = sys.modules["tvm_neuron.cache.fingerprint"]
KEY = "0" * 64
CONTENT = bytes(range(256)) * 5000  # of more than one chunk


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def store(tmp_path: Path, told: list[str]) -> Store:
    return Store(tmp_path / "cache", 10**7, told.append)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "made"
    path.write_bytes(CONTENT)
    return path


def test_what_was_kept_comes_back(store: Store, source: Path, tmp_path: Path, told: list[str]) -> None:
    target = tmp_path / "again"
    assert store.fetch(KEY, target) is None
    store.keep(KEY, source, {"headline": "quick"})
    assert store.fetch(KEY, target) == {"headline": "quick"}
    assert target.read_bytes() == CONTENT
    assert store.fetch("1" * 64, target) is None
    assert told == []


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: data[:40], "ends within its head"),
        (lambda data: data[:-1], "bytes instead of"),
        (lambda data: data + b"\0", "bytes instead of"),
        (lambda data: b"X" + data[1:], "is of another format"),
        (lambda data: data[:-5] + b"?" + data[-4:], "has a wrong checksum"),
        (lambda data: data.replace(b'"a"', b'"b"'), "has a wrong checksum"),
        (lambda data: data.replace(b'{"a"', b'["a"'), "has a damaged note"),
    ],
)
def test_a_damaged_entry_is_made_again(
    store: Store, source: Path, tmp_path: Path, told: list[str], damage: object, message: str
) -> None:
    store.keep(KEY, source, {"a": 1})
    entry = store.folder / KEY
    entry.write_bytes(damage(entry.read_bytes()))  # type: ignore[operator]
    target = tmp_path / "again"
    target.write_bytes(b"before")
    assert store.fetch(KEY, target) is None
    assert target.read_bytes() == b"before"
    assert not entry.exists()
    assert len(told) == 1
    assert told[0].startswith(f"an entry of the cache is damaged and made again: '{entry}' ")
    assert message in told[0]
    store.keep(KEY, source, {"a": 1})
    assert store.fetch(KEY, target) == {"a": 1}


def test_an_entry_under_another_key_is_damaged(store: Store, source: Path, tmp_path: Path, told: list[str]) -> None:
    store.keep(KEY, source, {})
    (store.folder / KEY).rename(store.folder / ("1" * 64))
    assert store.fetch("1" * 64, tmp_path / "again") is None
    assert "has a wrong checksum" in told[0]


def test_the_longest_unused_make_room(store: Store, source: Path, tmp_path: Path, told: list[str]) -> None:
    store.limit_bytes = 4 * len(CONTENT) + 1000
    for age in range(6):
        store.keep(f"{age}" * 64, source, {})
        os.utime(store.folder / (f"{age}" * 64), (age, age))
        if age == 3:
            assert store.fetch("0" * 64, tmp_path / "again") == {}
    assert {path.name[0] for path in store.folder.iterdir()} == {"0", "3", "4", "5"}
    assert told == []


def test_a_result_larger_than_the_cache(store: Store, source: Path, told: list[str]) -> None:
    store.limit_bytes = 10**6
    store.keep(KEY, source, {})
    assert told == ["the result takes 1 MB and is not kept; the cache may take 1"]
    assert not store.folder.exists()


def test_what_a_dead_writer_left_is_removed(store: Store, source: Path) -> None:
    store.folder.mkdir()
    old, new = store.folder / ".part-old", store.folder / ".part-new"
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (time.time() - 7200, time.time() - 7200))
    store.keep(KEY, source, {})
    assert {path.name for path in store.folder.iterdir()} == {".part-new", KEY}


def test_a_folder_that_can_not_be_written(source: Path, tmp_path: Path, told: list[str]) -> None:
    (tmp_path / "file").write_bytes(b"")
    store = Store(tmp_path / "file" / "cache", 10**7, told.append)
    assert store.fetch(KEY, tmp_path / "again") is None
    store.keep(KEY, source, {})
    assert told == [
        f"the cache '{store.folder}' can't be read: Not a directory",
        f"the cache '{store.folder}' can't be written: Not a directory",
    ]


_WRITER = """
import sys
from pathlib import Path
from tvm_neuron.cache import Store
folder, source, target = map(Path, sys.argv[1:4])
store = Store(folder, 3 * 10**6, sys.exit)
for turn in range(40):
    key = str(turn % 4) * 64
    store.keep(key, source, {"key": key})
    note = store.fetch(key, target)
    assert note in (None, {"key": key}), note
    assert note is None or target.read_bytes() == source.read_bytes()
"""


def test_several_processes_write_and_read(tmp_path: Path, source: Path) -> None:
    """All write the same keys into a cache with room for two of the four: entries come and go, and are always whole."""
    words = [sys.executable, "-c", _WRITER, str(tmp_path / "cache"), str(source)]
    running = [subprocess.Popen([*words, str(tmp_path / f"again{i}")]) for i in range(3)]
    assert [process.wait(timeout=300) for process in running] == [0, 0, 0]
    assert {path.stat().st_size > len(CONTENT) for path in (tmp_path / "cache").iterdir()} == {True}


def test_the_key_is_of_wishes_contents_and_compiler(source: Path, tmp_path: Path) -> None:
    key = fingerprint({"a": 1}, [source])
    copy = tmp_path / "copy"
    copy.write_bytes(CONTENT)
    assert fingerprint({"a": 1}, [copy]) == key
    copy.write_bytes(CONTENT + b"1")
    keys = {key, fingerprint({"a": 2}, [source]), fingerprint({"a": 1}, [copy]), fingerprint({"a": 1}, [source, copy])}
    keys.add(fingerprint({"a": 1}, [tmp_path / "missing"]))
    assert len(keys) == 5
    assert all(len(key) == 64 for key in keys)


@pytest.mark.parametrize("version", ["numpy", "apache-tvm"])
def test_another_version_of_what_it_stands_on_is_another_compiler(
    monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    before = compiler.__wrapped__()
    real = cached_fingerprint.version
    monkeypatch.setattr(cached_fingerprint, "version", lambda name: "0" if name == version else real(name))
    assert compiler.__wrapped__() != before


def test_changed_code_is_another_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cached_fingerprint, "_OURS", tmp_path)
    found = {compiler.__wrapped__()}
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text("x = 1")
        found.add(compiler.__wrapped__())
    (tmp_path / "b.py").write_text("x = 2")
    assert len({*found, compiler.__wrapped__()}) == 4


def test_where_it_lies(monkeypatch: pytest.MonkeyPatch, told: list[str]) -> None:
    def folder(given: str | None = None) -> str | None:
        store = open_store(given, told.append)
        return None if store is None else str(store.folder)

    assert folder() is None  # what tests/conftest.py says
    assert folder("/here") == "/here"
    monkeypatch.setenv("NEURON_CC_CACHE", "/there")
    assert (folder(), folder("off")) == ("/there", None)
    monkeypatch.delenv("NEURON_CC_CACHE")
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert folder() == "/xdg/tvm_neuron"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert folder() == "/home/me/.cache/tvm_neuron"
    monkeypatch.setenv("NEURON_CC_CACHE_MB", "7")
    store = open_store(None, told.append)
    assert store is not None
    assert store.limit_bytes == 7_000_000
    monkeypatch.setenv("NEURON_CC_CACHE_MB", "much")
    with pytest.raises(OptionError, match="NEURON_CC_CACHE_MB is 'much'; it must be a number of megabytes"):
        open_store(None, told.append)
