"""What is written is read back, byte for byte and value for value."""

import time
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from tests.neff.samples import add_relu, random_neff
from tests.program.strategies import seeds
from tvm_neuron import neff
from tvm_neuron.errors import NeffError
from tvm_neuron.hw import load_device
from tvm_neuron.program import DramTensor, Program


@given(seeds)
def test_read_undoes_write(rng: Random) -> None:
    before = random_neff(rng)
    data = neff.write(before)
    after = neff.read(data)
    assert after == before
    assert after.device.sources == before.device.sources
    assert list(after.weights) == list(before.weights)
    for name, array in before.weights.items():
        assert after.weights[name].dtype == array.dtype
        assert after.weights[name].tobytes() == array.tobytes()
    assert neff.write(after) == data


@given(seeds)
def test_compressed_is_read_alike(rng: Random) -> None:
    before = random_neff(rng)
    small = neff.write(before, compress=True)
    plain = neff.write(before)
    assert len(small) < len(plain)
    assert neff.write(neff.read(small)) == plain
    assert neff.write(neff.read(plain), compress=True) == small


def test_a_file_written_before_is_still_read(request: pytest.FixtureRequest) -> None:
    """NEFF 1.0 as it was first written; if this fails, the format or the instruction set needs a new version."""
    path = Path(__file__).parents[1] / "golden" / "add_relu.neff"
    if request.config.getoption("--update-golden"):
        neff.save(add_relu(), path)
    assert neff.load(path).program == add_relu().program


def test_save_and_load(tmp_path: Path) -> None:
    before = random_neff(Random(3))
    neff.save(before, tmp_path / "a.neff")
    assert neff.load(tmp_path / "a.neff") == before
    assert [path.name for path in tmp_path.iterdir()] == ["a.neff"]


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(NeffError, match=r"missing\.neff' can't be read: No such file or directory"):
        neff.load(tmp_path / "missing.neff")
    with pytest.raises(NeffError, match=r"a\.neff' can't be written: No such file or directory"):
        neff.save(random_neff(Random(3)), tmp_path / "missing" / "a.neff")


def test_header_alone() -> None:
    header = neff.read_header(neff.write(random_neff(Random(3))))
    assert header.version == (neff.MAJOR, neff.MINOR)
    assert header.compiler_version == "0.1.0"
    assert all(section.offset % 64 == 0 for section in header.sections)


def test_tables_that_contradict_each_other() -> None:
    tensors = (DramTensor("x", "input", (2,), "float32"), DramTensor("w", "weight", (2,), "float32"))
    whole = neff.Neff(
        name="net",
        program=Program(tensors, (), ()),
        device=load_device("inf1"),
        weights={"w": np.zeros(2, np.float32)},
        inputs=(neff.TensorInfo("x", (2,), "float32"),),
        outputs=(),
        options={},
        compiler_version="1",
    )
    changes: list[tuple[dict[str, Any], str]] = [
        ({"weights": {}}, "weights differ from the program's table: w"),
        ({"weights": {"w": np.zeros(2, np.int32)}}, "weights differ from the program's table: w"),
        ({"inputs": ()}, "the inputs of the model are not those of its program"),
        ({"inputs": (neff.TensorInfo("x", (2,), "complex64"),)}, "input 'x' has unknown dtype 'complex64'"),
        ({"program": Program((*tensors, tensors[1]), (), ())}, "two weights share a name"),
    ]
    for change, message in changes:
        with pytest.raises(NeffError, match=f"NEFF 'net': {message}"):
            replace(whole, **change)


def test_fifty_megabytes_are_read_at_once_without_a_copy() -> None:
    tensors = tuple(DramTensor(f"w{n}", "weight", (1 << 20,), "float32") for n in range(12))
    weights = {tensor.name: np.ones(1 << 20, np.float32) for tensor in tensors}
    device = load_device("inf1")
    data = neff.write(
        neff.Neff(
            name="big",
            program=Program(tensors, (), ()),
            device=device,
            weights=weights,
            inputs=(),
            outputs=(),
            options={},
            compiler_version="1",
        )
    )
    start = time.perf_counter()
    loaded = neff.read(data)
    seconds = time.perf_counter() - start
    owner: Any = loaded.weights["w11"].base
    while isinstance(owner, np.ndarray):
        owner = owner.base
    assert isinstance(owner, memoryview)
    assert owner.obj is data
    assert not loaded.weights["w0"].flags.writeable
    assert seconds < 1  # 0.04 s on a free machine
