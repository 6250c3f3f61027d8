"""Store: what was kept comes back whole, or not at all; processes side by side, damage, a full cache."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
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


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


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
    assert {path.name[0] for path in store.folder.iterdir()} == {"0", "3", "4", "5", "C"}
    assert told == []


def test_a_result_larger_than_the_cache(store: Store, source: Path, told: list[str]) -> None:
    store.limit_bytes = 10**6
    store.keep(KEY, source, {})
    assert told == ["the result takes 1 MB and is not kept; the cache may take 1"]
    assert not store.folder.exists()


def test_what_a_dead_writer_left_is_removed(store: Store, source: Path) -> None:
    store.keep(KEY, source, {})
    begun = (store.folder / KEY).read_bytes()[:100]
    old, new, foreign = (store.folder / f".part-{name}" for name in ("old", "new", "foreign"))
    for path in (old, new, foreign):
        path.write_bytes(b"half" if path == foreign else begun)
    for path in (old, foreign):
        os.utime(path, (time.time() - 7200, time.time() - 7200))
    store.keep("1" * 64, source, {})
    assert names(store.folder) == {".part-new", ".part-foreign", KEY, "1" * 64, "CACHEDIR.TAG"}


def test_its_folder_is_its_users_alone(store: Store, source: Path, told: list[str]) -> None:
    store.keep(KEY, source, {})
    assert {path.name: f"{path.stat().st_mode:o}" for path in (store.folder, store.folder / KEY)} == {
        "cache": "40700", KEY: "100600",
    }  # fmt: skip
    assert told == []


@pytest.mark.parametrize("name", ["notes.txt", ".git", "f" * 63, "f" * 64, "CACHEDIR.TAG", "folder"])
@pytest.mark.parametrize("limit_bytes", [10**7, 2 * 10**6])
def test_a_folder_that_holds_other_things_is_refused(
    store: Store, source: Path, tmp_path: Path, told: list[str], name: str, limit_bytes: int
) -> None:
    """However old and large they are, and also if they look like the cache's."""
    store.limit_bytes = limit_bytes
    store.folder.mkdir()
    (store.folder / name).mkdir() if name == "folder" else (store.folder / name).write_bytes(bytes(5 * 10**6))
    os.utime(store.folder / name, (0, 0))
    store.keep(KEY, source, {})
    assert store.fetch(KEY, tmp_path / "again") is None
    reason = f"it holds '{name}', which is not the cache's: give it an empty folder of its own"
    assert told == [f"the cache '{store.folder}' can't be {done}: {reason}" for done in ("written", "read")]
    assert names(store.folder) == {name}


def test_a_cache_into_which_others_were_put_is_refused(store: Store, source: Path, told: list[str]) -> None:
    store.keep(KEY, source, {})
    (store.folder / "notes.txt").write_text("mine")
    store.keep("1" * 64, source, {})
    assert "it holds 'notes.txt', which is not the cache's" in told[0]
    assert names(store.folder) == {KEY, "CACHEDIR.TAG", "notes.txt"}


def plant_other(entry: Path) -> None:
    entry.write_bytes(b"a store of somebody else")


def plant_link(entry: Path) -> None:
    entry.rename(entry.parents[1] / "elsewhere")
    entry.symlink_to(entry.parents[1] / "elsewhere")


def plant_pipe(entry: Path) -> None:
    entry.unlink()
    os.mkfifo(entry)


@pytest.mark.parametrize(
    ("plant", "reason"),
    [
        (plant_other, "does not begin as entries do, so it is left alone; remove it if you don't need it"),
        (plant_link, "is a link to another place"),
        (plant_pipe, "does not begin as entries do"),
        (lambda entry: entry.chmod(0o666), "may be written by other users (its mode is 666)"),
        (lambda entry: entry.chmod(0o620), "may be written by other users (its mode is 620)"),
    ],
)
def test_what_is_no_entry_of_ours_is_neither_read_nor_replaced_nor_removed(
    store: Store, source: Path, tmp_path: Path, told: list[str], plant: Callable[[Path], None], reason: str
) -> None:
    store.limit_bytes = 3 * 10**6
    store.keep(KEY, source, {})
    plant(store.folder / KEY)
    before = os.lstat(store.folder / KEY)
    os.utime(store.folder / KEY, (0, 0), follow_symlinks=False)
    assert store.fetch(KEY, tmp_path / "again") is None
    store.keep(KEY, source, {})
    assert [f"its entry '{KEY}' {reason}" in line for line in told] == [True, True]
    for other in "123":
        store.keep(other * 64, source, {})
    after = os.lstat(store.folder / KEY)
    assert (after.st_ino, after.st_size, after.st_mode) == (before.st_ino, before.st_size, before.st_mode)
    assert names(store.folder) == {KEY, "2" * 64, "3" * 64, "CACHEDIR.TAG"}


def test_another_users_work_is_not_trusted(
    store: Store, source: Path, tmp_path: Path, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store.keep(KEY, source, {})
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert store.fetch(KEY, tmp_path / "again") is None
    store.keep(KEY, source, {})
    assert [f"it belongs to the user {os.getuid()}, not to {os.getuid() + 1}" in line for line in told] == [True, True]


def test_a_folder_that_others_may_write_is_not_trusted(
    store: Store, source: Path, tmp_path: Path, told: list[str]
) -> None:
    store.keep(KEY, source, {})
    store.folder.chmod(0o777)
    assert store.fetch(KEY, tmp_path / "again") is None
    assert told == [f"the cache '{store.folder}' can't be read: it may be written by other users (its mode is 777)"]


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


@pytest.mark.slow
def test_several_processes_write_and_read(tmp_path: Path, source: Path) -> None:
    """All write the same keys into a cache with room for two of the four: entries come and go, and are always whole."""
    words = [sys.executable, "-c", _WRITER, str(tmp_path / "cache"), str(source)]
    running = [subprocess.Popen([*words, str(tmp_path / f"again{i}")]) for i in range(3)]
    assert [process.wait(timeout=300) for process in running] == [0, 0, 0]
    entries = [path for path in (tmp_path / "cache").iterdir() if path.name != "CACHEDIR.TAG"]
    assert {path.stat().st_size > len(CONTENT) for path in entries} == {True}


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
