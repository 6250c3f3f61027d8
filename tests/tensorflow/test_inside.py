"""Inside TensorFlow: traced modules and compiled SavedModels give what the model gives, in a new process too."""

import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

import tvm_neuron
import tvm_neuron.tensorflow as tfn
from tvm_neuron.errors import ModelError, OptionError

pytestmark = [pytest.mark.tensorflow, pytest.mark.filterwarnings("ignore")]
EXACT = tvm_neuron.BuildOptions(fp32_cast="none")
DATA = np.random.default_rng(0).standard_normal((4, 12)).astype("float32")
NEW_PROCESS = """
import sys
import numpy as np
import tensorflow as tf
import tvm_neuron.tensorflow
model = tf.saved_model.load(sys.argv[1])
np.save(sys.argv[2], model.signatures["serving_default"](features=tf.constant(np.load(sys.argv[3])))["probs"].numpy())
"""


@pytest.fixture(scope="module")
def model() -> keras.Model:
    keras.utils.set_random_seed(0)
    data = keras.Input((12,), name="features")
    inner = keras.layers.Dense(16, activation="relu", name="inner")(data)
    return keras.Model(data, keras.layers.Dense(5, activation="softmax", name="probs")(inner))


@pytest.fixture(scope="module")
def saved(model: keras.Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "saved"
    archive = keras.export.ExportArchive()
    archive.track(model)
    spec = [tf.TensorSpec((None, 12), name="features")]
    archive.add_endpoint("serve", lambda features: {"probs": model(features)}, input_signature=spec)
    archive.write_out(path, verbose=False)
    return path


def test_a_traced_model_is_called_and_saved_as_the_model_is(model: keras.Model, tmp_path: Path) -> None:
    traced = tfn.trace(model, DATA, options=EXACT)
    np.testing.assert_allclose(traced(DATA), model(DATA), rtol=1e-4)  # float32, sums of 16
    assert "neuroncore" in {row.where for row in traced.report.placement}
    tf.saved_model.save(traced, tmp_path / "traced")
    np.testing.assert_allclose(tf.saved_model.load(tmp_path / "traced")(DATA), model(DATA), rtol=1e-4)
    both = tf.function(lambda x, y: {"sum": x + y, "parts": [x, y * 2]})
    x, y = tf.constant(DATA), tf.constant(DATA[:1])
    found = tfn.trace(both, (x, y), options=EXACT)(x, y)
    wanted = both(x, y)
    tf.nest.assert_same_structure(found, wanted)
    for got, right in zip(tf.nest.flatten(found), tf.nest.flatten(wanted), strict=True):
        np.testing.assert_allclose(got, right, rtol=1e-6)


@pytest.mark.parametrize("sizes", [{"batch_size": 4}, {"model_feed_dict": {"features": DATA}}])
def test_a_compiled_saved_model_runs_in_a_new_process(
    sizes: dict, saved: Path, model: keras.Model, tmp_path: Path
) -> None:
    report = tfn.saved_model.compile(saved, tmp_path / "compiled", **sizes, options=EXACT)
    assert report.placement
    np.save(tmp_path / "x.npy", DATA)
    words = [tmp_path / "compiled", tmp_path / "y.npy", tmp_path / "x.npy"]
    done = subprocess.run([sys.executable, "-c", NEW_PROCESS, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), model(DATA), rtol=1e-4)


def test_any_number_of_rows_and_operators_kept_on_the_cpu(saved: Path, model: keras.Model, tmp_path: Path) -> None:
    report = tfn.saved_model.compile(
        saved, tmp_path / "compiled", batch_size=2, dynamic_batch_size=True, no_fuse_ops=["*inner*"],
        target="neuron/inf2", options=EXACT,
    )  # fmt: skip
    assert {row.where for row in report.placement if "inner" in row.name} == {"cpu"}
    assert "neuroncore" in {row.where for row in report.placement}
    assert report.macs_moved == 16 * 5 / (16 * 5 + 12 * 16)  # the second layer's, of both
    assert "29.4% of the multiplications neuroncore" in report.headline()
    serve = tf.saved_model.load(tmp_path / "compiled").signatures["serving_default"]
    for rows in (1, 3, 4):
        found = serve(features=tf.constant(DATA[:rows]))["probs"]
        np.testing.assert_allclose(found, model(DATA[:rows]), rtol=1e-4)


def test_words_of_the_compiler(saved: Path, model: keras.Model, tmp_path: Path) -> None:
    words = ["--fp32-cast", "none", "-O1"]
    report = tfn.saved_model.compile(saved, tmp_path / "compiled", 4, target="neuron/inf2", compiler_args=words)
    assert report.precision["fp32_cast"] == "none"
    assert report.macs_moved == 1
    with pytest.raises(OptionError, match="compiler_args: unrecognized arguments: --fp33"):
        tfn.saved_model.compile(saved, tmp_path / "other", 4, compiler_args=["--fp33"])
    with pytest.raises(OptionError, match="options and compiler_args say the same"):
        tfn.saved_model.compile(saved, tmp_path / "other", 4, compiler_args=words, options=EXACT)


def test_what_is_refused(saved: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="is no folder of a SavedModel"):
        tfn.saved_model.compile(tmp_path, tmp_path / "compiled")
    with pytest.raises(ModelError, match="exists: give the compiled SavedModel a folder of its own"):
        tfn.saved_model.compile(saved, tmp_path)
    with pytest.raises(ModelError, match="features"):
        tfn.saved_model.compile(saved, tmp_path / "compiled")
    assert not (tmp_path / "compiled").exists()


class Reading(tf.Module):
    """Lines of numbers in, the singular values and the name of the largest class out."""

    def __init__(self, model: keras.Model) -> None:
        super().__init__()
        self.model = model
        self.names = tf.constant(["a", "b", "c", "d", "e"])

    @tf.function(input_signature=[tf.TensorSpec((4,), tf.string, name="lines"), tf.TensorSpec((4, 12), name="more")])
    def __call__(self, lines: tf.Tensor, more: tf.Tensor) -> dict[str, tf.Tensor]:
        numbers = tf.strings.to_number(tf.strings.split(lines, ",").to_tensor(shape=(4, 12)))
        scores = self.model(tf.tanh(numbers + more))
        values = tf.linalg.svd(tf.matmul(scores, scores, transpose_a=True), compute_uv=False)
        both = tf.stack([values, values * 2])
        return {"name": tf.gather(self.names, tf.argmax(scores, -1)), "scores": scores, "values": tf.square(both)}


def test_what_cannot_be_imported_stays_tensorflows(model: keras.Model, tmp_path: Path) -> None:
    reading = Reading(model)
    tf.saved_model.save(reading, tmp_path / "saved")
    report = tfn.saved_model.compile(tmp_path / "saved", tmp_path / "compiled", target="neuron/inf2", options=EXACT)
    kept = {row.op: row.reason for row in report.placed("tensorflow")}
    assert kept["StringSplitV2"] == "it works on string"
    assert "Svd" in kept["Svd"]
    assert {"Tanh", "Softmax"} <= {row.op for row in report.placed("neuroncore")}
    assert 0 < report.macs_moved <= 1
    lines, data = tf.constant([",".join(map(str, row)) for row in DATA]), tf.constant(DATA)
    wanted = reading(lines, data)
    found = tf.saved_model.load(tmp_path / "compiled").signatures["serving_default"](lines=lines, more=data)
    assert found["name"].numpy().tolist() == wanted["name"].numpy().tolist()
    for name in ("scores", "values"):
        np.testing.assert_allclose(found[name], wanted[name], rtol=1e-4, atol=1e-5)


def test_forms_that_cannot_be_imported_stay_tensorflows() -> None:
    """Of an operator that tf2onnx knows, which is found by trying the operators alone."""
    weight = tf.constant(np.random.default_rng(1).standard_normal((12, 5)).astype("float32"))

    @tf.function
    def model(x: tf.Tensor) -> tf.Tensor:
        spectrum = tf.abs(tf.signal.rfft2d(tf.tanh(x)))
        return tf.nn.softmax(tf.concat([spectrum, x], 1)[:, :12] @ weight)

    traced = tfn.trace(model, DATA, "neuron/inf2", options=EXACT)
    np.testing.assert_allclose(traced(DATA), model(DATA), rtol=1e-4)


def test_nothing_that_can_be_imported() -> None:
    def upper(x: tf.Tensor) -> tf.Tensor:
        return tf.strings.upper(x)

    with pytest.raises(ModelError, match="string"):
        tfn.trace(tf.function(upper), tf.constant(["a"]))
