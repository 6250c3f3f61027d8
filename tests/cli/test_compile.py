"""neuron-cc compile: a NEFF or a library, whole or not at all; one message for each bad model or wish."""

import json
import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.cli.conftest import Cli
from tests.onnx_models import make_model
from tvm_neuron import codegen, neff
from tvm_neuron.errors import CompileError
from tvm_neuron.hw.load import device_to_dict, load_device

X = np.random.default_rng(2).normal(0, 9, (4, 8)).astype(np.float32)
Y = np.maximum(X + np.arange(-16, 16, dtype=np.float32).reshape(4, 8), 0)


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    np.savez(tmp_path / "x.npz", data=X)
    return tmp_path / "x.npz"


def test_with_the_real_code_generator(cli: Cli, onnx_file: Path, inputs: Path, tmp_path: Path) -> None:
    out = tmp_path / "net.neff"
    code, _, told = cli("compile", onnx_file, "--output", out)
    assert code == 0, told
    assert cli("run", out, "--input", inputs, "--output", tmp_path / "y.npz")[0] == 0
    with np.load(tmp_path / "y.npz") as outputs:
        np.testing.assert_allclose(outputs["result"], Y, rtol=0.01, atol=0.1)
    assert cli("info", out)[0] == cli("report", out)[0] == cli("disassemble", out)[0] == 0


@pytest.mark.usefixtures("fake_codegen")
def test_to_a_neff(cli: Cli, onnx_file: Path, inputs: Path, tmp_path: Path) -> None:
    out = tmp_path / "net.neff"
    code, said, told = cli("compile", onnx_file, "--framework", "ONNX", "--output", out, "--target", "inf2")
    assert code == 0, told
    assert said.startswith(f"{out}: operators: 2 neuroncore; ")
    assert "compile:   0." in told.splitlines()[0]
    compiled = neff.load(out)
    assert (compiled.name, compiled.device.name) == ("net", "inf2")
    assert [row.name for row in compiled.placement] == ["add", "relu"]
    assert cli("run", out, "--input", inputs, "--output", tmp_path / "y.npz")[0] == 0
    with np.load(tmp_path / "y.npz") as outputs:
        np.testing.assert_array_equal(outputs["result"], Y)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["net.neff", "net.onnx", "x.npz", "y.npz"]


@pytest.mark.usefixtures("fake_codegen")
def test_compressed(cli: Cli, onnx_file: Path, tmp_path: Path) -> None:
    plain, small = tmp_path / "plain.neff", tmp_path / "small.neff"
    for out, more in ((plain, ["--enable-fast-loading-neuron-binaries"]), (small, ["--compress"])):
        assert cli("compile", onnx_file, "--output", out, *more)[0] == 0
    assert neff.load(plain) == neff.load(small)
    assert small.stat().st_size < plain.stat().st_size
    assert not any(section.is_compressed for section in neff.read_header(plain.read_bytes()).sections)
    both = (
        "--compress makes a .neff slower to load and --enable-fast-loading-neuron-binaries quicker: leave one of them"
    )
    _, _, told = cli("compile", onnx_file, "--output", small, "--compress", "--enable-fast-loading-neuron-binaries")
    assert both in told
    code, _, told = cli("compile", onnx_file, "--output", tmp_path / "net.so", "--compress")
    assert code == 1
    assert "--compress: it is for a .neff; write one, --output FILE.neff, or leave the option out" in told


@pytest.mark.usefixtures("fake_codegen")
def test_to_a_library_with_cpu_parts(cli: Cli, mixed_onnx_file: Path, inputs: Path, tmp_path: Path) -> None:
    out = tmp_path / "net.so"
    code, said, told = cli("compile", mixed_onnx_file, "--output", out, "--verbose", "error")
    assert (code, told) == (0, "")
    assert said.startswith(f"{out}: operators: 2 neuroncore, 1 cpu; ")
    assert cli("run", out, "--input", inputs, "--output", tmp_path / "y.npz")[0] == 0
    with np.load(tmp_path / "y.npz") as outputs:
        np.testing.assert_array_equal(outputs["places"], np.nonzero(Y))
    code, said, _ = cli("report", out)
    assert code == 0
    assert "NonZero" in said
    code, _, told = cli("run", out, "--input", tmp_path / "y.npz", "--output", tmp_path / "z.npz")
    assert code == 1
    assert told == "neuron-cc run: error NCC200: input 'places' is not one of the model's; it takes 'data'\n"


@pytest.mark.usefixtures("fake_codegen")
def test_no_file_is_written_in_place_of_one_that_is_read(cli: Cli, onnx_file: Path, inputs: Path) -> None:
    made = onnx_file.with_suffix(".neff")
    assert cli("compile", onnx_file, "--output", made)[0] == 0
    other = onnx_file.parent / "other.neff"
    link = onnx_file.parent / "link.json"
    link.symlink_to(made)
    for words, said in (
        (("compile", onnx_file, "--output", other, "--logfile", onnx_file), "--logfile '{}' is a file that the"),
        (("compile", onnx_file, "--output", other, "--logfile", other), "is a file that --logfile writes, too: give"),
        (("run", made, "--input", inputs, "--output", inputs), "--output '{}' is a file that the command reads: give"),
        (("report", made, "--timeline", link), "--timeline '{}' is a file that the command reads: give another name"),
        (("disassemble", made, "--output", made), "--output '{}' is a file that the command reads: give another name"),
    ):
        kept = {path: path.read_bytes() for path in (onnx_file, made, inputs)}
        code, _, told = cli(*words)
        assert (code, kept) == (1, {path: path.read_bytes() for path in kept})
        assert said.format(words[-1]) in told
        assert not other.exists()


@pytest.mark.usefixtures("fake_codegen")
def test_a_neff_holds_no_cpu_code(cli: Cli, mixed_onnx_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "net.neff"
    code, said, told = cli("compile", mixed_onnx_file, "--output", out, "--verbose", "error")
    assert (code, said) == (1, "")
    assert "1 operator can't run on the NeuronCore:\n  find (NonZero): The size of its result" in told
    assert told.endswith("\nto run them on the CPU, write a library: --output FILE.so\n")
    assert not out.exists()


@pytest.mark.usefixtures("fake_codegen")
def test_a_subgraph_that_cannot_be_compiled(
    cli: Cli, onnx_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> bytes:
        raise CompileError("add: too large")

    monkeypatch.setattr(codegen.function, "compile_function", refuse)
    code, said, told = cli("compile", onnx_file, "--output", tmp_path / "net.neff", "--verbose", "error")
    assert (code, said, told) == (1, "", "neuron-cc compile: error NCC500: add: too large\n")


@pytest.mark.usefixtures("fake_codegen")
def test_must_compile(cli: Cli, mixed_onnx_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "net.so"
    code, _, told = cli("compile", mixed_onnx_file, "--output", out, "--verbose", "error", "--must-compile")
    assert code == 1
    assert "find (NonZero)" in told
    assert not out.exists()


@pytest.mark.usefixtures("fake_codegen")
def test_a_device_from_a_file(cli: Cli, onnx_file: Path, tmp_path: Path) -> None:
    raw = device_to_dict(load_device("inf1")) | {"name": "mine"}
    (tmp_path / "mine.json").write_text(json.dumps(raw))
    out = tmp_path / "net.neff"
    assert cli("compile", onnx_file, "--output", out, "--target", tmp_path / "mine.json")[0] == 0
    assert neff.load(out).device.name == "mine"


@pytest.mark.usefixtures("fake_codegen")
@pytest.mark.parametrize("as_file", [False, True])
def test_io_config(cli: Cli, onnx_file: Path, tmp_path: Path, as_file: bool) -> None:
    text = '{"inputs": {"data": [[4, 8], "float32"]}, "outputs": ["result"]}'
    (tmp_path / "io.json").write_text(text)
    given = (tmp_path / "io.json").as_uri() if as_file else text
    assert cli("compile", onnx_file, "--output", tmp_path / "net.neff", "--io-config", given)[0] == 0


@pytest.mark.usefixtures("fake_codegen")
def test_io_config_gives_the_value_of_an_input(cli: Cli, tmp_path: Path) -> None:
    model = make_model([helper.make_node("Reshape", ["x", "target"], ["y"], name="flat")], {"x": [2, 6]}, ["y"])
    model.graph.input.append(helper.make_tensor_value_info("target", TensorProto.INT64, [2]))
    onnx.save(model, tmp_path / "net.onnx")
    words = ("compile", tmp_path / "net.onnx", "--output", tmp_path / "net.neff", "--verbose", "error")
    code, _, told = cli(*words)
    assert code == 1
    wanted = '{"inputs": {"target": {"value": ...}}}'
    assert f"on the command line --io-config '{wanted}'" in told
    assert cli(*words, "--io-config", wanted.replace("...", "[4, 3]"))[0] == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--io-config", "{"), "--io-config: Expecting property name enclosed in double quotes"),
        (("--io-config", '{"inputs": ' + 20_000 * "["), "--io-config: maximum recursion depth exceeded"),
        (("--io-config", '{"inputs": {"data": 7}}'), "--io-config: it is not of the form "),
        (("--io-config", '{"inputs": {"data": [[0], "float32"]}}'), "--io-config: input 'data' must be [[<sizes"),
        (("--io-config", "missing.json"), "--io-config file 'missing.json' can't be read: No such file or directory"),
        (("--io-config", '{"inputs": {"data": {"value": [[1], [2, 3]]}}}'), "the value given for 'data' is no array: "),
        (("--target", "gpu"), "unknown device 'gpu': take one of inf1, inf2, trn1, trn2, or the path of a .json file"),
    ],
)
def test_wishes_that_cannot_be_met(
    cli: Cli, onnx_file: Path, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    code, said, told = cli("compile", onnx_file, "--output", tmp_path / "net.neff", "--verbose", "error", *words)
    assert (code, said) == (1, "")
    assert re.match(rf"neuron-cc compile: error NCC\d{{3}}: {re.escape(message)}", told)
    assert told.count("\n") == 1
    assert not (tmp_path / "net.neff").exists()


@pytest.mark.parametrize("content", [None, b"", b"not a model", b"\x08\x0a"])
def test_not_an_onnx_file(cli: Cli, tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "net.onnx"
    if content is not None:
        path.write_bytes(content)
    code, said, told = cli("compile", path, "--output", tmp_path / "net.neff", "--verbose", "error")
    assert (code, said) == (1, "")
    assert told.startswith(f"neuron-cc compile: error NCC100: {path}: ")
    assert told.count("\n") == 1


def test_names_in_a_model_do_not_steer_the_terminal(cli: Cli, tmp_path: Path) -> None:
    model = make_model([helper.make_node("Relu", ["x"], ["y"])], {"x": [2]}, ["y"])
    model.graph.node[0].op_type = "Rel\x1b[2Ju\r"
    onnx.save(model, tmp_path / "net.onnx")
    code, _, told = cli("compile", tmp_path / "net.onnx", "--output", tmp_path / "net.neff", "--verbose", "error")
    assert code == 1
    assert "operators that can't be imported: Rel?[2Ju?. No converter knows them" in told


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("net.txt", "must end in .neff or .so"),
        ("no/net.neff", "there is no folder"),
        (f"{'n' * 300}.neff", f"'{'n' * 60}...' can't be a file: File name too long"),
        (f"{'n' * 300}/net.so", f"'{'n' * 60}...' can't be a file: File name too long"),
        ("folder.so", "'folder.so' is a folder"),
    ],
)
def test_an_output_that_makes_no_sense(
    cli: Cli, onnx_file: Path, monkeypatch: pytest.MonkeyPatch, output: str, message: str
) -> None:
    monkeypatch.chdir(onnx_file.parent)
    Path("folder.so").mkdir()
    code, _, told = cli("compile", onnx_file, "--output", output)
    assert code == 2
    assert message in told


@pytest.mark.usefixtures("fake_codegen")
def test_other_names_that_are_too_long(cli: Cli, onnx_file: Path, neff_file: Path, tmp_path: Path) -> None:
    longest, longer = "n" * 250 + ".neff", "n" * 300  # names have up to 255 bytes
    assert cli("compile", onnx_file, "--output", tmp_path / longest)[0] == 0
    for words in (
        ("compile", longer, "--output", tmp_path / "net.neff"),
        ("compile", onnx_file, "--output", tmp_path / "net.neff", "--logfile", longer),
        ("compile", onnx_file, "--output", tmp_path / "net.neff", "--cache", longer),
        ("compile", onnx_file, "--output", tmp_path / "net.neff", "--io-config", longer),
        ("disassemble", neff_file, "--output", longer),
        ("disassemble", longer),
        ("report", neff_file, "--timeline", longer),
        ("run", neff_file, "--input", longer, "--output", longer),
    ):
        code, _, told = cli(*words, *(["--verbose", "error"] if words[0] == "compile" else []))
        assert code == (0 if "--cache" in words else 1)
        assert re.match(r"(neuron-cc \w+: error NCC\d{3}: .*\n)?$", told), (words, told)


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("net.safetensors", "torch.onnx.export("),
        ("net.ckpt", "torch.onnx.export("),
    ],
)
@pytest.mark.parametrize("command", ["compile", "check-model"])
def test_files_of_other_formats(cli: Cli, command: str, name: str, advice: str) -> None:
    code, said, told = cli(command, name)
    assert (code, said) == (1, "")
    start = f"neuron-cc {command}: error NCC300: {name}: models are read as ONNX. Convert it: {advice}"
    assert told.splitlines()[-1].startswith(start)
