"""Models of TensorFlow and Keras, by every way in, give what TensorFlow gives."""

from functools import partial
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
import tvm

import tvm_neuron
from tvm_neuron import relay
from tvm_neuron.cli.main import main
from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.tensorflow import captured
from tvm_neuron.operators import listing

pytestmark = [pytest.mark.tensorflow, pytest.mark.filterwarnings("ignore")]  # TensorFlow warns of its own internals
EXACT = tvm_neuron.BuildOptions(fp32_cast="none")
FLOAT32 = 1e-4  # sums of at most a few hundred products, functions of ACT good to 1e-5
RNG = np.random.default_rng(0)
IMAGE = RNG.standard_normal((2, 12, 12, 3)).astype("float32")


def run(library: Any, *inputs: np.ndarray) -> list[np.ndarray]:
    executor = library["default"](tvm.cpu())
    for spec, value in zip(executor.inputs, inputs, strict=True):
        executor.set_input(spec.name, value)
    executor.run()
    return [executor.get_output(number).numpy() for number in range(len(executor.outputs))]


def check(found: list[np.ndarray], *wanted: Any) -> None:
    for got, right in zip(found, map(np.asarray, wanted), strict=True):
        assert (got.shape, got.dtype) == (right.shape, right.dtype)
        np.testing.assert_allclose(got, right, rtol=FLOAT32, atol=FLOAT32 / 10 * np.abs(right).max(initial=1))


@pytest.fixture(scope="module")
def images() -> keras.Model:
    """What many networks for images have, with statistics that are not those of a new network."""
    keras.utils.set_random_seed(0)
    data = keras.Input((12, 12, 3), name="image")
    x = keras.layers.Conv2D(8, 3, strides=2, padding="same")(data)
    x = keras.layers.BatchNormalization(name="norm")(x)
    x = keras.layers.Activation("swish")(keras.layers.DepthwiseConv2D(3, padding="same")(x))
    x = keras.layers.Concatenate()([keras.layers.MaxPooling2D(2)(x), keras.layers.AveragePooling2D(2)(x)])
    x = keras.layers.GlobalAveragePooling2D()(keras.layers.UpSampling2D()(x))
    model = keras.Model(data, keras.layers.Dense(5, activation="softmax", name="probs")(x))
    norm = model.get_layer("norm")
    norm.set_weights([RNG.uniform(0.5, 1.5, 8).astype("float32") for _ in norm.get_weights()])
    return model


def _sequences() -> keras.Model:
    data = keras.Input((6,), name="words", dtype="int32", batch_size=2)
    x = keras.layers.Embedding(11, 8)(data)
    x = keras.layers.Bidirectional(keras.layers.LSTM(6, return_sequences=True, unroll=True))(x)
    return keras.Model(data, keras.layers.GRU(5, unroll=True)(x))


def _encoder() -> keras.Model:
    """A layer of BERT."""
    data = keras.Input((7, 16), name="tokens", batch_size=2)
    x = keras.layers.LayerNormalization()(data + keras.layers.MultiHeadAttention(4, 4)(data, data))
    inner = keras.layers.Dense(16)(keras.layers.Dense(32, activation="gelu")(x))
    return keras.Model(data, keras.layers.LayerNormalization()(x + inner))


def test_a_model_of_keras(images: keras.Model) -> None:
    library = tvm_neuron.compile(images, IMAGE, target="neuron/inf2", options=EXACT)
    check(run(library, IMAGE), images(IMAGE))
    executor = library["default"](tvm.cpu())
    assert ([spec.name for spec in executor.inputs], [spec.name for spec in executor.outputs]) == (["image"], ["probs"])
    assert any("probs" in row.name for row in tvm_neuron.report(library).placement)


def test_every_output_of_a_layer_with_several() -> None:
    data = keras.Input((5, 4), batch_size=2)
    states = keras.layers.LSTM(3, return_sequences=True, return_state=True, unroll=True, name="lstm")(data)
    model, x = keras.Model(data, states), RNG.standard_normal((2, 5, 4)).astype("float32")
    library = tvm_neuron.compile(model, x, target="neuron/inf2", options=EXACT)
    check(run(library, x), *model(x))
    assert [spec.name for spec in library["default"](tvm.cpu()).outputs] == ["lstm", "lstm_1", "lstm_2"]


@pytest.mark.parametrize("make", [_sequences, _encoder])
def test_sequences(make: Any) -> None:
    keras.utils.set_random_seed(1)
    model = make()
    shape = tuple(model.inputs[0].shape)
    data = RNG.integers(0, 11, shape).astype("int32") if len(shape) == 2 else RNG.standard_normal(shape).astype("f4")
    check(run(tvm_neuron.compile(model, target="neuron/inf2", options=EXACT), data), model(data))


@pytest.mark.parametrize("form", ["keras", "saved", "graph", "cli"])
def test_files(form: str, images: keras.Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / {"keras": "net.keras", "graph": "net.pb"}.get(form, "saved")
    if form == "keras":
        images.save(path)
    elif form == "graph":
        path.write_bytes(captured(images).graph.SerializeToString())
    else:
        images.export(path, verbose=False)
    if form == "cli":
        out = str(tmp_path / "net.so")
        config = '{"inputs": {"image": [[2, 12, 12, 3], "float32"]}}'
        words = ["compile", str(path), "--framework", "TENSORFLOW", "--io-config", config, "--output", out]
        assert main([*words, "--fp32-cast", "none", "--cache", "off"]) == 0
        capsys.readouterr()
        check(run(tvm.runtime.load_module(out), IMAGE), images(IMAGE))
        return
    check(run(tvm_neuron.compile(path, IMAGE, target="neuron/inf2", options=EXACT), IMAGE), images(IMAGE))


def test_a_file_of_tflite(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    first = [keras.Input((12, 12, 3)), keras.layers.Conv2D(8, 3, strides=2, activation="relu")]
    images = keras.Sequential([*first, keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(5)])
    (tmp_path / "net.tflite").write_bytes(tf.lite.TFLiteConverter.from_keras_model(images).convert())
    capfd.readouterr()  # the converter prints
    library = tvm_neuron.compile(tmp_path / "net.tflite", target="neuron/inf2", options=EXACT)
    check(run(library, IMAGE[:1]), images(IMAGE[:1]))
    words = ["compile", str(tmp_path / "net.tflite"), "--framework", "TFLITE", "--output", str(tmp_path / "net.so")]
    assert main([*words, "--cache", "off"]) == 0


def test_shapes_of_an_open_batch_in_tflite(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    layers = [keras.layers.UpSampling2D(), keras.layers.Flatten(), keras.layers.Dense(3), keras.layers.Reshape((3, 1))]
    model = keras.Sequential([keras.Input((6, 6, 2)), *layers])
    (tmp_path / "net.tflite").write_bytes(tf.lite.TFLiteConverter.from_keras_model(model).convert())
    capfd.readouterr()  # the converter prints
    image = IMAGE[:1, :6, :6, :2]
    library = tvm_neuron.compile(tmp_path / "net.tflite", target="neuron/inf2", options=EXACT)
    assert not tvm_neuron.report(library).placed("cpu")
    check(run(library, image), model(image))


def test_products_over_the_last_of_several_dimensions_in_tflite(capfd: pytest.CaptureFixture[str]) -> None:
    """Their shapes are gathered, multiplied and packed from the open batch's."""
    rows = keras.Input((5, 6))
    mixed = keras.layers.MultiHeadAttention(2, 4)(rows, keras.layers.Dense(6, activation="gelu")(rows))
    scaled = keras.layers.Lambda(lambda x: tf.reshape(x, [tf.shape(x)[0] * 5 + 1 - 1, 6]))(mixed)
    model = keras.Model(rows, keras.layers.Dense(3)(scaled))
    content = tf.lite.TFLiteConverter.from_keras_model(model).convert()
    capfd.readouterr()  # the converter prints
    x = np.random.default_rng(6).standard_normal((1, 5, 6)).astype("float32")
    library = tvm_neuron.compile(content, x, target="neuron/inf2", options=EXACT)
    assert not tvm_neuron.report(library).placed("cpu")
    check(run(library, x), model(x))


@pytest.mark.parametrize(("padding", "kernel", "strides"), [("same", 3, 2), ("valid", (4, 3), (2, 3)), ("valid", 1, 2)])
def test_transposed_convolutions_in_tflite(
    padding: str, kernel: Any, strides: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    keras.utils.set_random_seed(3)
    layer = keras.layers.Conv2DTranspose(
        4, kernel, strides=strides, padding=padding, activation="relu", bias_initializer="random_normal"
    )
    model = keras.Sequential([keras.Input((6, 5, 2)), layer])
    (tmp_path / "net.tflite").write_bytes(tf.lite.TFLiteConverter.from_keras_model(model).convert())
    capfd.readouterr()  # the converter prints
    image = IMAGE[:1, :6, :5, :2]
    check(run(tvm_neuron.compile(tmp_path / "net.tflite", target="neuron/inf2", options=EXACT), image), model(image))


def test_a_quantised_network_of_tflite(capfd: pytest.CaptureFixture[str]) -> None:
    """In int8, its transposed convolution too: as TensorFlow's interpreter has it, but for a step of the last scale."""
    keras.utils.set_random_seed(4)
    first = [keras.Input((6, 5, 2)), keras.layers.Conv2D(8, 3, padding="same", activation="relu6")]
    layer = keras.layers.Conv2DTranspose(4, 3, strides=2, padding="same", bias_initializer="random_normal")
    image = IMAGE[:1, :6, :5, :2]
    converter = tf.lite.TFLiteConverter.from_keras_model(keras.Sequential([*first, layer]))
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: ([image * scale] for scale in (0.5, 1))
    content = converter.convert()
    capfd.readouterr()  # the converter prints
    interpreter = tf.lite.Interpreter(model_content=content)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], image)
    interpreter.invoke()
    (output,) = interpreter.get_output_details()
    right = interpreter.get_tensor(output["index"])
    step = np.ptp(right) / 255
    (found,) = run(tvm_neuron.compile(content, target="neuron/inf2", options=EXACT), image)
    assert found.shape == right.shape
    assert np.abs(found - right).max() < 1.5 * step


def test_functions_of_several_tensors() -> None:
    weight = tf.Variable(RNG.standard_normal((4, 3)).astype("f4"))

    @tf.function
    def both(x: Any, y: Any) -> Any:
        return {"sum": tf.matmul(x, weight) + y, "difference": tf.matmul(x, weight) - y}

    x, y = RNG.standard_normal((2, 4)).astype("f4"), RNG.standard_normal(3).astype("f4")
    wanted = both(x, y)
    named = tvm_neuron.compile(both, {"x": x, "y": y}, target="neuron/inf2", options=EXACT)
    assert [spec.name for spec in named["default"](tvm.cpu()).outputs] == ["difference", "sum"]
    check(run(named, x, y), wanted["difference"], wanted["sum"])
    check(run(tvm_neuron.compile(both, (x, y), options=EXACT), x, y), wanted["difference"], wanted["sum"])
    fixed = both.get_concrete_function(*(tf.TensorSpec(each.shape, name=key) for key, each in (("x", x), ("y", y))))
    check(run(tvm_neuron.compile(fixed, options=EXACT), x, y), wanted["difference"], wanted["sum"])


def test_importers_of_tvm_018(images: keras.Model) -> None:
    first = IMAGE.transpose(0, 3, 1, 2)
    mod, params = relay.frontend.from_keras(images, {"image": first.shape})
    check(run(relay.build(mod, "neuron/inf2", params=params, options=EXACT), first), images(IMAGE))
    mod, params = relay.frontend.from_keras(images, {"image": IMAGE.shape}, layout="NHWC")
    check(run(relay.build(mod, "neuron/inf2", params=params, options=EXACT), IMAGE), images(IMAGE))
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder("float32", (2, 3), "x")
        y = tf.nn.relu(x, name="y")
        tf.square(y, name="z")
    data = RNG.standard_normal((2, 3)).astype("f4")
    mod, params = relay.frontend.from_tensorflow(graph.as_graph_def(), shape={"x": (2, 3)}, outputs=["z", "y"])
    check(run(relay.build(mod, "neuron/inf2", params=params, options=EXACT), data), np.maximum(data, 0) ** 2,
          np.maximum(data, 0))  # fmt: skip
    with pytest.raises(ModelError, match="from_tensorflow: the graph has no node 'w' to be an output"):
        relay.frontend.from_tensorflow(graph.as_graph_def(), outputs=["w"])
    with pytest.raises(ModelError, match="layout = 'CHWN'; known are NCHW"):
        relay.frontend.from_keras(images, layout="CHWN")


def test_inputs_without_a_name_have_those_of_relays_days() -> None:
    first, second = keras.Input((4,)), keras.Input((3,))  # input_1 and input_2 of Keras 2
    model = keras.Model([second, first], keras.layers.Concatenate()([second, first * 2.0]))
    x, y = RNG.standard_normal((2, 4)).astype("f4"), RNG.standard_normal((2, 3)).astype("f4")
    mod, params = relay.frontend.from_keras(model, {"input_7": y.shape, "input_2": x.shape})
    executor = relay.build(mod, "neuron/inf2", params=params, options=EXACT)["default"](tvm.cpu())
    executor.set_input("input_2", x)
    executor.set_input("input_7", y)
    executor.run()
    check([executor.get_output(0).numpy()], np.concatenate([y, x * 2], 1))
    own = [each.name for each in model.inputs]
    mod, params = relay.frontend.from_keras(model, dict(zip(own, (y.shape, x.shape), strict=True)))
    assert {own[0], own[1]} <= {var.name_hint for var in mod["main"].params}
    with pytest.raises(ModelError, match=f"the model has no input 'input_1'; its inputs are {own[0]}, {own[1]}"):
        relay.frontend.from_keras(model, {"input_1": x.shape})


def test_what_is_refused(images: keras.Model, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="a function of TensorFlow has no inputs of its own"):
        tvm_neuron.compile(tf.function(lambda x: x))
    with pytest.raises(ModelError, match="this model of Keras does not know its inputs"):
        tvm_neuron.compile(keras.Sequential([keras.layers.Dense(3)]))
    with pytest.raises(ModelError, match="2 example inputs of a model with 1: "):
        tvm_neuron.compile(captured(images).graph, (IMAGE, IMAGE))
    with pytest.raises(ModelError, match="the model has no input 'x'; its inputs are image"):
        relay.frontend.from_keras(images, {"x": (1, 3, 12, 12)})
    with pytest.raises(ModelError, match="TensorFlow can't trace the model"):
        tvm_neuron.compile(images, RNG.standard_normal((2, 12, 12, 5)).astype("f4"))
    images.save(tmp_path / "net.h5")
    with pytest.raises(ModelError, match="is of HDF5, which Keras can't read without running"):
        tvm_neuron.compile(tmp_path / "net.h5", IMAGE)
    (tmp_path / "net.pb").write_bytes(b"\xff\xff")
    with pytest.raises(ModelError, match=r"net.pb' can't be read as a model of TensorFlow"):
        tvm_neuron.compile(tmp_path / "net.pb", IMAGE)
    with pytest.raises(ModelError, match="the graph of TensorFlow has no outputs"):
        tvm_neuron.compile(tf.compat.v1.GraphDef())
    with pytest.raises(ModelError, match=r"none.keras' can't be read"):
        tvm_neuron.compile(tmp_path / "none.keras", IMAGE)


def test_an_input_of_any_rank_needs_a_shape(tmp_path: Path) -> None:
    module = tf.Module()
    module.f = tf.function(lambda x: x * 2, input_signature=[tf.TensorSpec(None, name="x")])
    tf.saved_model.save(module, tmp_path / "saved", signatures=module.f)
    with pytest.raises(ModelError, match="input 'x' has no shape in the model; give it"):
        tvm_neuron.compile(tmp_path / "saved")
    data = RNG.standard_normal((2, 3)).astype("f4")
    check(run(tvm_neuron.compile(tmp_path / "saved", data, options=EXACT), data), data * 2)


def test_saved_models_that_touch_files_are_not_restored(tmp_path: Path) -> None:
    module = tf.Module()
    module.f = tf.function(lambda x: x + tf.strings.to_number(tf.io.read_file("/etc/hostname")))
    signature = module.f.get_concrete_function(tf.TensorSpec((), name="x"))
    tf.saved_model.save(module, tmp_path / "saved", signatures=signature)
    with pytest.raises(ModelError, match=r"\(ReadFile\), which touches files or runs Python"):
        tvm_neuron.compile(tmp_path / "saved")


def test_signatures_are_chosen_by_the_user(tmp_path: Path) -> None:
    module = tf.Module()
    module.f = tf.function(lambda x: x * 2, input_signature=[tf.TensorSpec((3,), name="x")])
    module.g = tf.function(lambda x: x * 3, input_signature=[tf.TensorSpec((3,), name="x")])
    tf.saved_model.save(module, tmp_path / "saved", signatures={"twice": module.f, "thrice": module.g})
    with pytest.raises(ModelError, match=r"several signatures \(thrice, twice\)"):
        tvm_neuron.compile(tmp_path / "saved")
    chosen = tf.saved_model.load(tmp_path / "saved").signatures["thrice"]
    x = RNG.standard_normal(3).astype("f4")
    check(run(tvm_neuron.compile(chosen, options=EXACT), x), x * 3)


def test_convolutions_of_several_groups() -> None:
    keras.utils.set_random_seed(2)
    data = keras.Input((8, 8, 4))
    model = keras.Model(data, keras.layers.Conv2D(8, 3, groups=2, padding="same")(data))
    image = RNG.standard_normal((1, 8, 8, 4)).astype("f4")
    check(run(tvm_neuron.compile(model, image, target="neuron/inf2", options=EXACT), image), model(image))


def test_a_while_whose_end_the_data_tell() -> None:
    drawn = RNG.standard_normal((8, 8)).astype("float32")
    weight = tf.constant(0.8 * drawn / np.linalg.norm(drawn, 2))  # shrinks whatever it is given: there is an end

    @tf.function
    def shrunk(x: tf.Tensor) -> tuple:
        rounds = tf.constant(0)
        while tf.reduce_sum(tf.abs(x)) > 0.5:
            x = tf.tanh(x @ weight)
            rounds += 1
        return x, rounds

    x = RNG.standard_normal((4, 8)).astype("float32")
    library = tvm_neuron.compile(shrunk, x, "neuron/inf2", options=EXACT)
    for each in (x, x * 100, x * 0):
        check(run(library, each), *shrunk(each))
    (loop,) = (row for row in tvm_neuron.report(library).placement if row.op == "Loop")
    assert loop.reason == "its end depends on data, so it runs as a loop"


@pytest.mark.parametrize("count", [1, 2, 4])
def test_one_of_several_branches(count: int) -> None:
    weight = tf.Variable(RNG.standard_normal((3, 3)).astype("float32"))
    branches = [tf.sin, weight.__rmatmul__, tf.square, tf.tanh][:count]

    @tf.function
    def chosen(which: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
        found = tf.switch_case(which, [partial(branch, x) for branch in branches])
        for _ in range(3):  # and inside of a loop
            found = tf.switch_case(which - 1, [partial(branch, found) for branch in branches])
        return found

    x = RNG.standard_normal((2, 3)).astype("float32")
    library = tvm_neuron.compile(chosen, (np.int32(0), x), target="neuron/inf2", options=EXACT)
    for which in (-1, 0, 1, 2, 3, 9):
        check(run(library, np.int32(which), x), chosen(np.int32(which), x))


def test_a_function_that_says_its_inputs() -> None:
    @tf.function(input_signature=[tf.TensorSpec((2, 3), tf.float32), tf.TensorSpec((3,), tf.float32)])
    def scaled(x: tf.Tensor, factor: tf.Tensor) -> tf.Tensor:
        return tf.tanh(x) * factor

    x, factor = (RNG.standard_normal(shape).astype("float32") for shape in ((2, 3), (3,)))
    library = tvm_neuron.compile(scaled, target="neuron/inf2", options=EXACT)
    check(run(library, x, factor), scaled(x, factor))


def test_operators_are_listed() -> None:
    for framework, becomes, some in (("TENSORFLOW", "ONNX", {"Conv2D", "Erf"}), ("KERAS", "ONNX", {"Conv2D"}),
                                     ("TFLITE", "RELAX", {"CONV_2D", "SHAPE"})):  # fmt: skip
        found = listing(framework)
        assert found.becomes == becomes
        assert some <= {operator.name for operator in found.operators}
