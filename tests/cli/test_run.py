"""neuron-cc run: right results, and one line for every way in which the inputs can be wrong."""

import tracemalloc
from contextlib import suppress
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tvm

from tests.cli.conftest import Cli
from tvm_neuron.cli.arrays import read_npz, write_npz
from tvm_neuron.cli.compiled import open_compiled
from tvm_neuron.errors import InputError

X = np.random.default_rng(1).normal(0, 9, (4, 8)).astype(np.float32)


def test_run(cli: Cli, neff_file: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=X)
    assert cli("run", neff_file, "--input", tmp_path / "x.npz", "--output", tmp_path / "y.npz") == (0, "", "")
    with np.load(tmp_path / "y.npz") as outputs:
        assert outputs.files == ["y"]
        weights = np.arange(-16, 16, dtype=np.float32).reshape(4, 8)
        np.testing.assert_array_equal(outputs["y"], np.maximum(X + weights, 0))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({}, "input 'x' is missing; the model takes 'x'"),
        ({"x": X, "z": X}, "input 'z' is not one of the model's; it takes 'x'"),
        ({"x": X[:3]}, "input 'x' has shape [3, 8]; the model takes [4, 8]"),
        ({"x": X.astype(np.float64)}, "input 'x' is float64; the model takes float32: convert it"),
    ],
)
def test_inputs_that_do_not_fit(
    cli: Cli, neff_file: Path, tmp_path: Path, arrays: dict[str, Any], message: str
) -> None:
    np.savez(tmp_path / "x.npz", **arrays)
    code, out, err = cli("run", neff_file, "--input", tmp_path / "x.npz", "--output", tmp_path / "y.npz")
    assert (code, out, err) == (1, "", f"neuron-cc run: error NCC200: {message}\n")
    assert not (tmp_path / "y.npz").exists()


def test_input_files_that_cannot_be_read(cli: Cli, neff_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    begin = "neuron-cc run: error NCC200: "
    no_npz = f"{begin}'{path}' is no .npz file: write it with numpy.savez(path, name=array, ...)\n"
    words = ("run", neff_file, "--input", path, "--output", tmp_path / "y.npz")
    assert cli(*words) == (1, "", f"neuron-cc run: error NCC200: '{path}' can't be read: No such file or directory\n")
    for content in (b"", b"text", b"PK\x03\x04 a damaged zip"):
        path.write_bytes(content)
        assert cli(*words) == (1, "", no_npz)
    with path.open("wb") as file:
        np.save(file, X)
    assert cli(*words) == (1, "", no_npz)
    np.savez(path, x=np.array([object()]))  # would need pickle
    assert cli(*words) == (1, "", no_npz)


def test_damaged_npz_files(tmp_path: Path) -> None:
    """Any one byte changed: read, or refused, never anything else."""
    np.savez(tmp_path / "x.npz", x=X[:1, :2])
    data = (tmp_path / "x.npz").read_bytes()
    for at in range(len(data)):
        (tmp_path / "x.npz").write_bytes(data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :])
        with suppress(InputError):
            read_npz(str(tmp_path / "x.npz"))


def test_an_output_that_cannot_be_written(cli: Cli, neff_file: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=X)
    out = tmp_path / "missing" / "y.npz"
    code, _, err = cli("run", neff_file, "--input", tmp_path / "x.npz", "--output", out)
    assert (code, err) == (1, f"neuron-cc run: error NCC600: '{out}' can't be written: No such file or directory\n")


def test_neither_neff_nor_library(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "r.neff"
    words = ("run", path, "--input", "x.npz", "--output", "y.npz")
    path.write_bytes(b"nothing")
    wanted = f"'{path}' is neither a .neff nor a library: give a file that neuron-cc compile has written"
    assert cli(*words)[::2] == (1, f"neuron-cc run: error NCC600: {wanted}\n")
    path.write_bytes(b"\x7fELF but no library".ljust(64, b"\0"))
    code, _, err = cli(*words)
    assert code == 1
    assert err.startswith(f"neuron-cc run: error NCC600: '{path}' can't be loaded as a compiled library: ")
    assert err.count("\n") == 1


def test_a_truncated_library_is_refused_before_it_is_loaded(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "lib.so"
    np.savez(tmp_path / "x.npz", x=X)
    header = b"\x7fELF".ljust(40, b"\0") + (9000).to_bytes(8, "little") + bytes(10) + b"\x40\0\x05\0"
    for data, needed in ((header.ljust(8000, b"\0"), 9000 + 5 * 64), (header[:20], 64)):
        path.write_bytes(data)
        words = ("run", path, "--input", tmp_path / "x.npz", "--output", tmp_path / "y.npz")
        message = f"'{path}' is a truncated library: {len(data)} bytes instead of {needed}"
        assert cli(*words) == (1, "", f"neuron-cc run: error NCC600: {message}\n")


def test_a_library_is_not_held_as_bytes_while_it_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "lib.so"
    path.write_bytes(b"\x7fELF".ljust(50_000_000, b"\0"))
    held: list[int] = []
    monkeypatch.setattr(tvm.runtime, "load_module", lambda _path: held.append(tracemalloc.get_traced_memory()[0]))
    tracemalloc.start()
    try:
        open_compiled(str(path))
    finally:
        tracemalloc.stop()
    assert [each < 10_000_000 for each in held] == [True]


def test_bfloat16_survives_the_file(tmp_path: Path) -> None:
    array = X.astype(ml_dtypes.bfloat16)
    write_npz(tmp_path / "y.npz", {"y": array})
    np.testing.assert_array_equal(read_npz(str(tmp_path / "y.npz"))["y"], array)
