"""neuron-cc chips: a model or a kernel over several chips, a row each; what one refuses stops no other."""

import json
from pathlib import Path

import ml_dtypes
import numpy as np

from tests.cli.conftest import Cli
from tvm_neuron.hw import CHIPS, load_device

KERNEL = """
import tvm_neuron.nki as nki
import tvm_neuron.nki.language as nl

@nki.jit
def double(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, value=nl.load(x) * 2.0)
    return out

@nki.jit
def product(a, b):
    out = nl.ndarray((128, 512), dtype=a.dtype, buffer=nl.shared_hbm)
    nl.store(out, value=nl.matmul(nl.load(a), nl.load(b), transpose_x=True))
    return out

@nki.jit
def blocks(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for at in range(nl.program_id(0), 8, nl.num_programs(0)):
        nl.store(out[nl.ds(at * 128, 128)], value=nl.load(x[nl.ds(at * 128, 128)]) * 2.0)
    return out

on_two = blocks[2]
"""


def written(folder: Path, **arrays: np.ndarray) -> tuple[str, str]:
    (folder / "kernels.py").write_text(KERNEL)
    np.savez(folder / "x.npz", **arrays)
    return str(folder / "kernels.py"), str(folder / "x.npz")


def test_a_model_over_all_chips(cli: Cli, mixed_onnx_file: Path) -> None:
    code, said, told = cli("chips", mixed_onnx_file, "--json")
    rows = json.loads(said)
    assert (code, told) == (0, "")
    assert [row["chip"] for row in rows] == list(CHIPS)
    for row in rows:
        assert row["operators"] == {"neuroncore": 2, "cpu": 1}
        assert row["latency_us"] >= row["bound_us"] > 0
    assert all(chip in cli("chips", mixed_onnx_file, "--targets", "inf2", "trn2")[1] for chip in ("inf2", "trn2"))


def test_a_kernel_on_two_cores(cli: Cli, tmp_path: Path) -> None:
    path, arrays = written(tmp_path, x=np.ones((1024, 2048), np.float32))
    one, two = (
        json.loads(cli("chips", f"{path}:{name}", "--input", arrays, "--json")[1]) for name in ("blocks", "on_two")
    )
    for row, other in zip(one, two, strict=True):
        assert row["chip"] == other["chip"]
        assert 0.45 * row["latency_us"] < other["latency_us"] < 0.9 * row["latency_us"]


def test_a_kernel_in_8_bit_floats(cli: Cli, tmp_path: Path) -> None:
    arrays = tmp_path / "ab.npz"
    path = f"{Path(__file__).parents[1] / 'nki/library_style.py'}:product"
    np.savez(arrays, a=np.ones((256, 64), np.float32), b=np.ones((256, 512), np.float32))
    words = ("--input", arrays, "--cast", "float8_e4m3", "--targets", "inf1", "trn1", "trn2")
    code, said, _ = cli("chips", path.replace(":product", ":pairs"), *words, "--json")
    rows = {row["chip"]: row for row in json.loads(said)}
    assert code == 0
    assert "inf1 multiplies bfloat16, float16 and" in rows["inf1"]["refused"]
    cycles = {chip: rows[chip]["busy_us"]["pe"] * load_device(chip).pe_clock_hz / 1e6 for chip in ("trn1", "trn2")}
    assert [round(each) for each in cycles.values()] == [2 * 512, 512]  # two products, or one of pairs
    np.savez(arrays, a=np.ones((256, 64), ml_dtypes.float8_e4m3))
    assert "array 'a': NumPy's files don't keep 8-bit floats; save it as float32" in cli("chips", path, *words)[2]


def test_a_kernel_over_chips_of_which_one_has_too_few_columns(cli: Cli, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    path, arrays = written(tmp_path, a=rng.random((128, 128), np.float32), b=rng.random((128, 512), np.float32))
    code, said, _ = cli("chips", f"{path}:product", "--input", arrays, "--json")
    rows = {row["chip"]: row for row in json.loads(said)}
    assert code == 0
    assert "128" in rows["inf1"]["refused"]
    macs = 128 * 128 * 512
    for chip in ("inf2", "trn1", "trn2"):
        share = macs / load_device(chip).peak_macs_per_second * 1e6 / rows[chip]["latency_us"]
        assert rows[chip]["pe_utilisation"] == share
        assert rows[chip]["dram_bytes"] == 4 * (128 * 128 + 2 * 128 * 512)
    assert rows["trn1"]["latency_us"] == rows["inf2"]["latency_us"] != rows["trn2"]["latency_us"]
    assert "inf1: " in cli("chips", f"{path}:product", "--input", arrays)[1]


def test_what_is_asked_for_wrongly(cli: Cli, tmp_path: Path, mixed_onnx_file: Path) -> None:
    path, arrays = written(tmp_path, x=np.ones((4, 4), np.float32))
    (tmp_path / "bad.py").write_text("1 / 0")
    for words, message in (
        ((f"{path}:double",), "a kernel needs its arguments, --input FILE.npz"),
        ((f"{path}:treble", "--input", arrays), "has no kernel 'treble'"),
        ((f"{tmp_path}/none.py:double", "--input", arrays), "can't be read: it is no file of Python"),
        ((f"{tmp_path}/bad.py:double", "--input", arrays), "can't be run: ZeroDivisionError: division by zero"),
        ((mixed_onnx_file, "--input", arrays), "it is for a kernel, FILE.py:NAME; a model's time has no inputs"),
        ((mixed_onnx_file, "--targets", "gpu"), "unknown device 'gpu'"),
        (("nowhere.onnx",), "nowhere.onnx: no such file"),
    ):
        code, _, told = cli("chips", *words)
        assert code == 1
        assert message in told
