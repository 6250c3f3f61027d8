"""neuron-cc info, disassemble, report, list-operators, and the options that belong to no command."""

import json
import re
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tvm
from onnx import helper

from tests.cli.conftest import Cli
from tests.neff.samples import reseal
from tests.onnx_models import make_model
from tvm_neuron import BuildOptions, neff, relay
from tvm_neuron.isa import Instruction, Wait, affine
from tvm_neuron.program import parse_program
from tvm_neuron.runtime import neffs

Golden = Callable[[str, str], None]


def test_info(cli: Cli, neff_file: Path, golden: Golden) -> None:
    code, out, err = cli("info", neff_file)
    assert (code, err) == (0, "")
    golden("info.txt", out)


def test_info_json(cli: Cli, neff_file: Path) -> None:
    facts = json.loads(cli("info", neff_file, "--json")[1])
    assert facts["compiler_version"] == "0.1.0"
    assert facts["options"] == {"fp32_cast": "all"}
    assert facts["inputs"] == [{"name": "x", "shape": [4, 8], "dtype": "float32"}]
    memory = {"activations": 512, "sbuf_peak": 16384, "spill": 0, "weights": 128, "inputs": 128, "outputs": 128}
    assert {name: facts["memory_bytes"][name] for name in memory} == memory
    assert 100 < facts["memory_bytes"]["instructions"] < 1000
    assert facts["instructions"]["pool"] == {"written": 1, "run": 2}
    assert facts["device"]["pe_rows"]["value"] == 128


@pytest.mark.parametrize(("major", "advice"), [(2, "update tvm_neuron"), (0, "compile the model again")])
def test_info_of_another_major_version(cli: Cli, neff_file: Path, tmp_path: Path, major: int, advice: str) -> None:
    """Whatever came after the first 48 bytes then; the commands that need more refuse it."""
    other = tmp_path / "other.neff"
    other.write_bytes(
        neff_file.read_bytes()[:8] + struct.pack("<HH", major, 7) + neff_file.read_bytes()[12:48] + b"?" * 99
    )
    code, out, err = cli("info", other)
    assert (code, err) == (0, "")
    first, second, third = out.splitlines()
    assert (first, second) == (f"NEFF version:     {major}.7", "compiler version: 0.1.0")
    assert third.endswith(advice)
    assert json.loads(cli("info", other, "--json")[1])["neff_version"] == f"{major}.7"
    code, _, err = cli("disassemble", other)
    assert (code, err.strip().endswith(advice)) == (1, True)


def test_info_of_a_newer_minor_version(cli: Cli, neff_file: Path, tmp_path: Path) -> None:
    """One that can be read here is told whole; one with a section that can't be left out says so."""
    newer = tmp_path / "newer.neff"
    newer.write_bytes(reseal(neff_file.read_bytes(), minor=99, future=b"?"))
    assert "NEFF version:     1.99" in cli("info", newer)[1]
    assert cli("disassemble", newer)[0] == 0
    newer.write_bytes(reseal(neff_file.read_bytes(), minor=99, needed=["future"], future=b"?"))
    advice = "NEFF section 'future' is needed to run it and unknown here: update tvm_neuron"
    lines = ["NEFF version:     1.99", "compiler version: 0.1.0", f"not read:         {advice}"]
    assert cli("info", newer) == (0, "\n".join(lines) + "\n", "")
    assert cli("disassemble", newer) == (1, "", f"neuron-cc disassemble: error NCC600: {advice}\n")


def test_a_program_that_breaks_a_rule_is_not_run(cli: Cli, neff_file: Path, tmp_path: Path) -> None:
    """Such a file is as no compiler writes it; it can still be looked at."""
    whole = neff.load(neff_file)
    waits = (Wait("pe", affine(1), 1),)
    body = tuple(node.replace(waits=waits) if isinstance(node, Instruction) else node for node in whole.program.body)
    broken = tmp_path / "broken.neff"
    neff.save(replace(whole, program=whole.program.with_body(body)), broken)
    np.savez(tmp_path / "x.npz", x=np.zeros((4, 8), np.float32))
    for words in (["run", broken, "--input", tmp_path / "x.npz", "--output", tmp_path / "y.npz"], ["report", broken]):
        code, said, told = cli(*words)
        assert (code, said) == (1, "")
        assert re.search(r"error NCC600: NEFF holds no sound program: dma_copy of .* could wait for ever", told)
    assert cli("info", broken)[0] == cli("disassemble", broken)[0] == 0


def test_disassemble(cli: Cli, neff_file: Path, golden: Golden, tmp_path: Path) -> None:
    code, out, err = cli("disassemble", neff_file)
    assert (code, err) == (0, "")
    golden("disassembly.txt", out)
    assert parse_program(out) == neff.load(neff_file).program
    assert cli("disassemble", neff_file, "--output", tmp_path / "r.txt") == (0, "", "")
    assert (tmp_path / "r.txt").read_text() == out


def test_report(cli: Cli, neff_file: Path, tmp_path: Path) -> None:
    code, out, err = cli("report", neff_file)
    assert (code, err) == (0, "")
    assert "sum/relu" in out
    whole = json.loads(cli("report", neff_file, "--json", "--timeline", tmp_path / "t.json")[1])
    assert [row["name"] for row in whole["layers"]] == ["sum/add", "sum/relu"]
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    code, _, err = cli("report", neff_file, "--top", -1)
    assert code == 1
    assert "--top -1: it is a number of layers, at least 0" in err


@pytest.mark.parametrize("command", ["info", "disassemble"])
def test_a_damaged_library(cli: Cli, tmp_path: Path, command: str) -> None:
    path = tmp_path / "lib.so"
    path.write_bytes(b"\x7fELF and more")
    message = f"'{path}' is a truncated library: 13 bytes instead of 64"
    assert cli(command, path) == (1, "", f"neuron-cc {command}: error NCC600: {message}\n")


@pytest.fixture
def two_programs(tmp_path: Path) -> Path:
    """A library of two products, and between them an operator on the CPU."""
    weights = {"w": np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)}
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], "first"),
        helper.make_node("Elu", ["a"], ["b"], "between"),
        helper.make_node("MatMul", ["b", "w"], ["y"], "second"),
    ]
    mod, params = relay.frontend.from_onnx(make_model(nodes, {"x": [4, 64]}, ["y"], weights))
    library = relay.build(mod, params=params, options=BuildOptions(on_cpu=("between",), minimum_segment_size=1))
    library.export_library(tmp_path / "two.so")
    return tmp_path / "two.so"


def test_a_library(cli: Cli, two_programs: Path, tmp_path: Path) -> None:
    code, said, _ = cli("info", two_programs)
    assert code == 0
    for line in ("device:           neuron/inf1", "input:            x 4x64 float32", "operators:        2 neuroncore"):
        assert f"{line}\n" in said
    assert re.search(r"^program: +neuron_1, 1 core, [\d,]+ bytes$", said, re.MULTILINE)
    facts = json.loads(cli("info", two_programs, "--json")[1])
    assert list(facts["programs"]) == ["neuron_0", "neuron_1"]
    assert [facts["order"][0], facts["order"][-1]] == ["neuron_0", "neuron_1"]
    (alone,) = (data for name, data in neffs(tvm.runtime.load_module(str(two_programs))).items() if name == "neuron_1")
    (tmp_path / "one.neff").write_bytes(alone)
    for command in ("info", "disassemble"):
        code, said, _ = cli(command, two_programs, "--program", "neuron_1")
        assert (code, said) == (0, cli(command, tmp_path / "one.neff")[1])
    words = ("--timeline", tmp_path / "t.json")
    assert cli("report", two_programs, *words, "--program", "neuron_1")[0] == 0
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert {event["args"]["operator"] for event in events if event["ph"] == "X"} == {"second"}
    assert cli("report", two_programs, *words)[0] == 0
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    processes = [event["args"]["name"] for event in events if event["name"] == "process_name"]
    assert processes == ["host", "neuron_0", "neuron_1"]
    part, *_ = (event for event in events if event["ph"] == "i")
    ends = {pid: max(e["ts"] + e["dur"] for e in events if e["ph"] == "X" and e["pid"] == pid) for pid in (1, 2)}
    assert part["name"].startswith("cpu:")
    assert ends[1] <= part["ts"] < ends[2]


def test_which_program(cli: Cli, two_programs: Path, neff_file: Path, tmp_path: Path) -> None:
    several = f"'{two_programs}' has several programs: choose one with --program: neuron_0, neuron_1\n"
    code, _, told = cli("disassemble", two_programs)
    assert (code, told) == (1, f"neuron-cc disassemble: error NCC600: {several}")
    _, _, told = cli("info", two_programs, "--program", "neuron_7")
    assert "has no program 'neuron_7': choose one with --program: neuron_0, neuron_1" in told
    assert "is one program: leave --program and --bucket out" in cli("info", neff_file, "--program", "x")[2]
    assert "the library has no bucket 3" in cli("disassemble", two_programs, "--bucket", 3)[2]
    told = cli("report", two_programs, "--program", "neuron_0")[2]
    assert "--program chooses the program for --timeline and --tables" in told
    assert not (tmp_path / "t.json").exists()


@pytest.mark.parametrize("command", ["info", "disassemble", "report"])
def test_damaged_files(cli: Cli, neff_file: Path, command: str) -> None:
    data = bytearray(neff_file.read_bytes())
    data[-1] ^= 1
    neff_file.write_bytes(data)
    expected = "NEFF is corrupted: the checksum of its section 'weights' is wrong"
    assert cli(command, neff_file) == (1, "", f"neuron-cc {command}: error NCC600: {expected}\n")


def test_list_operators(cli: Cli) -> None:
    code, out, err = cli("list-operators", "--framework", "ONNX")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert "Conv" in lines
    assert lines[lines.index("NonZero") + 1].startswith("#   CPU: ")
    assert "#   All its shapes are known at compile time" in lines
    raw = json.loads(cli("list-operators", "--framework", "ONNX", "--json")[1])
    rows = {row["name"]: row for row in raw["operators"]}
    assert len(rows) > 150
    assert {outcome["where"] for outcome in rows["NonZero"]["outcomes"]} <= {"cpu", "refused"}
    assert rows["Conv"]["outcomes"][0]["where"] == "neuroncore"
    assert "nn.conv2d" in cli("list-operators", "--framework", "relax")[1].splitlines()
    code, out, err = cli("list-operators", "--framework", "MXNET")
    first, _, *others = out.splitlines()
    assert (code, err, first) == (0, "", "# Operators of MXNET that are read. They become ONNX's, of which")
    assert {"Convolution", "broadcast_add"} <= {*others}


def test_version(cli: Cli) -> None:
    code, out, _ = cli("--version")
    assert code == 0
    assert re.fullmatch(r"neuron-cc \d+\.\d+\.\d+ \(NEFF 1\.11, TVM 0\.27\..*\)\n", out)


@pytest.mark.parametrize("words", [(), ("fly",), ("info",), ("list-operators", "--framework", "CAFFE")])
def test_wrong_use(cli: Cli, words: tuple[str, ...]) -> None:
    code, out, err = cli(*words)
    assert (code, out) == (2, "")
    assert err.startswith("usage: neuron-cc")


def test_help_of_every_command(cli: Cli) -> None:
    for command in ("compile", "run", "report", "info", "disassemble", "list-operators"):
        assert command in cli("--help")[1]
        assert cli(command, "--help")[0] == 0


def test_as_a_process(neff_file: Path) -> None:
    """A reader that goes away early is no error, and bad input gives no traceback."""
    command = [sys.executable, "-m", "tvm_neuron.cli.main"]
    with subprocess.Popen(
        [*command, "disassemble", neff_file], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout
        process.stdout.close()
        assert (process.wait(), process.stderr and process.stderr.read()) == (0, b"")
    done = subprocess.run([*command, "info", __file__], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    wanted = f"'{__file__}' is neither a .neff nor a library: give a file that neuron-cc compile has written"
    assert done.stderr == f"neuron-cc info: error NCC600: {wanted}\n"


def test_an_interrupted_command(cli: Cli, neff_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_path: str) -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr(neff, "read_file", interrupt)
    assert cli("disassemble", neff_file) == (130, "", "neuron-cc disassemble: interrupted\n")


def test_cpu_parts_are_timed_where_inputs_are_given(
    cli: Cli, mixed_onnx_file: Path, neff_file: Path, tmp_path: Path
) -> None:
    library, arrays = tmp_path / "m.so", tmp_path / "x.npz"
    np.savez(arrays, data=np.random.default_rng(0).standard_normal((4, 8)).astype("float32"))
    assert cli("compile", mixed_onnx_file, "--output", library)[0] == 0
    alone, timed = (json.loads(cli("report", library, "--json", *words)[1]) for words in ((), ("--input", arrays)))
    assert alone["end_to_end"]["cpu_us"] is None
    assert 0 < timed["end_to_end"]["cpu_us"] < 1e6
    assert timed["end_to_end_us"] == pytest.approx(alone["end_to_end_us"] + timed["end_to_end"]["cpu_us"])
    code, _, told = cli("report", neff_file, "--input", arrays)
    assert code == 1
    assert "--input is for timing CPU parts, and a .neff has none: leave the option out" in told
