"""tvmc: models load, compile into packages, run and are tuned, from Python and from the command line."""

import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import tvm_neuron.relay
from tests.onnx_models import mixed_model, reference
from tvm_neuron.codegen import function
from tvm_neuron.codegen.search import quickest
from tvm_neuron.errors import InputError, ModelError, NeuronError, OptionError
from tvm_neuron.tvmc.main import main, shapes

# isort: split
from tvm.driver import tvmc

MODEL = mixed_model()


@pytest.fixture(name="file", scope="module")
def _file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tvmc") / "model.onnx"
    onnx.save(MODEL, path)
    return path


@pytest.fixture(name="package", scope="module")
def _package(file: Path) -> tvmc.TVMCPackage:
    return tvmc.compile(tvmc.load(file), "neuron/inf2", package_path=file.with_name("model.tar"))


def _inputs() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    return {
        value.name: rng.standard_normal([dim.dim_value for dim in value.type.tensor_type.shape.dim], dtype="float32")
        for value in MODEL.graph.input
    }


def _agree(outputs: dict[str, np.ndarray], inputs: dict[str, np.ndarray]) -> None:
    expected = reference(MODEL, inputs)
    assert list(outputs) == [f"output_{index}" for index in range(len(expected))]
    for found, exact in zip(outputs.values(), expected, strict=True):
        # bfloat16 rounds by up to 2**-9 in each of the few layers, and the sums of the last cancel out in part
        assert np.linalg.norm(found - exact) <= 8 * 2.0**-8 * np.linalg.norm(exact)


def test_a_package_holds_three_files_and_agrees_with_onnxruntime(package: tvmc.TVMCPackage) -> None:
    with tarfile.open(package.package_path) as archive:
        assert sorted(archive.getnames()) == ["mod.json", "mod.params", "mod.so"]
    assert json.loads(package.graph)["device"] == "neuron/inf2"
    inputs = _inputs()
    result = tvmc.run(tvmc.TVMCPackage(package_path=package.package_path), device="cpu", inputs=inputs)
    _agree(result.outputs, inputs)
    assert result.get_output("output_0") is result.outputs["output_0"]
    assert result.times is None
    assert "output_0" in str(result)
    assert result.modelled_us > 0


@pytest.mark.parametrize("mode", ["random", "zeros", "ones"])
def test_inputs_are_made_up(package: tvmc.TVMCPackage, mode: str, tmp_path: Path) -> None:
    result = tvmc.run(package, "neuron", fill_mode=mode, benchmark=True, repeat=2, number=1, profile=True)
    assert len(result.times.results) == 2
    assert "modelled latency" in str(result)
    assert "Engines" in result.profile
    result.save(tmp_path / "y.npz")
    with np.load(tmp_path / "y.npz") as saved:
        np.testing.assert_array_equal(saved["output_0"], result.outputs["output_0"])


def test_a_model_is_saved_and_loaded(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tvmc.load(file).save(tmp_path / "saved.tar")
    model = tvmc.load(tmp_path / "saved.tar")
    inputs = _inputs()
    _agree(tvmc.run(tvmc.compile(model, target="neuron/inf2"), inputs=inputs).outputs, inputs)
    model.summary()
    assert "def main" in capsys.readouterr().out


def test_a_module_of_relay_is_saved_and_loaded(tmp_path: Path) -> None:
    mod, params = tvm_neuron.relay.testing.mlp.get_workload(1)
    model = tvmc.TVMCModel(mod, params)
    model.save(tmp_path / "mlp.tar")
    again = tvmc.TVMCModel(model_path=tmp_path / "mlp.tar")
    assert again.mod.astext() == mod.astext()
    one, other = (tvmc.run(tvmc.compile(each, "neuron/inf2")).outputs["output_0"] for each in (model, again))
    np.testing.assert_array_equal(one, other)


def test_tuning_is_recorded_and_used(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tvmc.load(file)
    records = tvmc.tune(model, target="neuron/inf2")
    again = str(tmp_path / "again.json")
    assert tvmc.tune(model, "neuron/inf2", again, prior_records=records, trials=8) == again
    assert "before tuning" in capsys.readouterr().out
    found = json.loads(Path(records).read_text())
    assert found["tuned_us"] <= found["untuned_us"]
    package = tvmc.compile(model, target="neuron/inf2", tuning_records=records)
    assert tvmc.run(package).modelled_us == pytest.approx(found["tuned_us"])


@pytest.mark.slow
def test_a_search_is_made_once(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, searches = tvmc.load(file), []

    def counting(make: Any, name: str, *others: Any) -> Any:
        searches.append(name)
        return quickest(make, name, *others)

    monkeypatch.setattr(function, "quickest", counting)
    monkeypatch.setenv("NEURON_CC_CACHE", str(tmp_path / "cache"))
    records = tvmc.tune(model, target="neuron/inf2")
    made = len(searches)
    assert made > 0
    again = tvmc.tune(tvmc.load(file), "neuron/inf2")
    package = tvmc.compile(model, "neuron/inf2", tuning_records=records)
    assert len(searches) == made
    assert Path(again).read_text() == Path(records).read_text()
    assert tvmc.run(package).modelled_us == pytest.approx(json.loads(Path(records).read_text())["tuned_us"])
    tvmc.tune(model, target="neuron/inf1")  # of another chip nothing is known
    assert len(searches) > made
    monkeypatch.setenv("NEURON_CC_CACHE", "off")
    made = len(searches)
    tvmc.tune(model, target="neuron/inf2")
    assert len(searches) > made


@pytest.mark.slow
def test_the_command_line(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inputs = _inputs()
    np.savez(tmp_path / "x.npz", **inputs)
    package, result, records = (str(tmp_path / name) for name in ("m.tar", "y.npz", "r.json"))
    form = " ".join(f"{name}:[{','.join(map(str, value.shape))}]" for name, value in inputs.items())
    assert main(["tune", "--target", "neuron", "--output", records, str(file)]) == 0
    chosen = ["--target", "neuron", "--input-shapes", form, "--tuning-records", records, "--output", package]
    assert main(["compile", *chosen, str(file)]) == 0
    asked = ["--inputs", str(tmp_path / "x.npz"), "--output", result, "--print-time", "--print-top", "2", "--profile"]
    assert main(["run", *asked, package]) == 0
    told = capsys.readouterr().out
    assert all(part in told for part in ("modelled latency", "mean (ms)", "output_0: {", "Engines"))
    with np.load(result) as saved:
        _agree(dict(saved), inputs)
    assert main(["run", str(tmp_path / "none.tar")]) == 1
    assert "tvmc run: " in capsys.readouterr().err


def test_shapes_are_read() -> None:
    assert shapes("a/b:0:[1, 3] c:[2]") == {"a/b:0": [1, 3], "c": [2]}
    for wrong in ("a", "a:[x]", "a:[1] b"):
        with pytest.raises(Exception, match="is not of the form"):
            shapes(wrong)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda path, _: tvmc.load(path / "none.onnx"), ModelError, "does not exist"),
        (lambda path, _: tvmc.load(path / "x.bin"), OptionError, "the name 'x.bin' tells no format; give one of onnx"),
        (lambda path, _: tvmc.load(path / "x.bin", "caffe"), OptionError, "model_format is 'caffe'; give one of onnx"),
        (lambda path, _: tvmc.load(path / "x.tar"), ModelError, "is no tarball"),
        (lambda path, _: tvmc.load(path / "x.tar", None, {"x": (1,)}), OptionError, "whose shapes are fixed"),
        (lambda path, _: tvmc.TVMCModel(), ModelError, "TVMCModel takes a module, or model_path"),
        (lambda path, _: tvmc.TVMCPackage(path / "none.tar"), ModelError, "can't be read: No such file"),
        (lambda path, _: tvmc.TVMCPackage(_tar(path)), ModelError, r"has no mod\.so: it is no package"),
        (lambda path, _: tvmc.TVMCModel(model_path=_tar(path)), ModelError, "is none that TVMCModel.save.. wrote"),
        (lambda path, p: tvmc.run(p, "tpu"), OptionError, "device is 'tpu'; there are neuron, cpu"),
        (lambda path, p: tvmc.run(p, fill_mode="x"), OptionError, "fill_mode is 'x'; there are random, zeros, ones"),
        (lambda path, p: tvmc.run(p, hostname="h"), OptionError, "hostname is 'h'; packages run on this machine"),
        (lambda path, p: tvmc.run(p, inputs={"no": np.zeros(1)}), InputError, "no"),
        (lambda path, p: _model().save(path / "m.tar"), ModelError, "a module of Relax that .* keep the model's file"),
        (lambda path, p: tvmc.compile(_model(), "neuron", cross="cc"), OptionError, "a library for this machine"),
        (lambda path, p: tvmc.compile(_model(), "neuron", tuning_records=path / "x.bin"), ModelError, "has no records"),
        (lambda path, p: tvmc.compile(_model(), "neuron", tuning_records=path / "no"), NeuronError, "can't be read"),
    ],
)
def test_what_is_refused(
    call: Callable[[Path, Any], Any], error: type[Exception], message: str, package: tvmc.TVMCPackage, tmp_path: Path
) -> None:
    for name in ("x.bin", "x.tar"):
        (tmp_path / name).write_bytes(b"{}")
    with pytest.raises(error, match=message):
        call(tmp_path, package)


def _model() -> tvmc.TVMCModel:
    return tvmc.TVMCModel(*tvm_neuron.relay.frontend.from_onnx(MODEL))


def _tar(folder: Path) -> Path:
    path = folder / "other.tar"
    with tarfile.open(path, "w") as archive:
        archive.add(folder / "x.bin", "x.bin")
    return path
