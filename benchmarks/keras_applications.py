"""Networks of keras.applications by one way in each: `python -m benchmarks.keras_applications [NAME...] [--way WAY]`.

Prints a table as it goes: operators on the NeuronCore and on the CPU, the error of what it gives beside Keras in
float32, modelled time, seconds. Weights are random and seeded, those that a constructor makes constant too, so that
every part has an effect. Ways: `keras` (the model itself), `tflite` (TensorFlow's converter), `int8` (its full
quantisation, beside TensorFlow's own interpreter), `nchw` (the twin with channels first; timed only, TensorFlow runs
none on a CPU).
"""

import argparse
import gc
import time
from collections.abc import Iterator
from dataclasses import astuple, dataclass, fields
from typing import Any

import keras
import numpy as np
import tensorflow as tf
import tvm

import tvm_neuron
from tvm_neuron.errors import NeuronError

SIDES = {  # pixels a side: what is enough for each to have all its layers, and little to compute
    "MobileNet": 64, "MobileNetV2": 64, "MobileNetV3Small": 64, "MobileNetV3Large": 64, "VGG16": 32, "VGG19": 32,
    "ResNet50": 64, "ResNet50V2": 64, "DenseNet121": 64, "EfficientNetB0": 64, "EfficientNetV2B0": 64,
    "ConvNeXtTiny": 64, "InceptionV3": 80, "Xception": 80, "InceptionResNetV2": 80, "NASNetMobile": 64,
    "EfficientNetB1": 64, "EfficientNetV2B1": 64, "EfficientNetV2S": 64, "ConvNeXtSmall": 64, "DenseNet169": 64,
    "ResNet101": 64, "ResNet101V2": 64, "EfficientNetB2": 64, "EfficientNetV2B2": 64,
}  # fmt: skip
WAYS = ("keras", "tflite", "int8", "nchw")
CLASSES = 10
EXACT = tvm_neuron.BuildOptions(fp32_cast="none", optlevel=1)


@dataclass(frozen=True, slots=True)
class Row:
    """What was found of one network; `error` is relative, in L2, and None where nothing was run."""

    network: str
    core: int
    cpu: str
    error: float | None
    us: float
    seconds: float


def network(name: str) -> keras.Model:
    """With the weights of seed 0, and no softmax, which would hide errors."""
    keras.utils.set_random_seed(0)
    side, rng = SIDES[name], np.random.default_rng(0)
    shape = (side, side, 3) if keras.config.image_data_format() == "channels_last" else (3, side, side)
    model = getattr(keras.applications, name)(
        weights=None, input_shape=shape, classes=CLASSES, classifier_activation=None
    )
    for weight in model.weights:
        if len(weight.shape) == 1:
            is_factor = weight.name in ("gamma", "variance") or "moving_variance" in weight.name
            weight.assign(rng.uniform(0.7, 1.3, weight.shape) if is_factor else rng.normal(0, 0.1, weight.shape))
    return model


def measure(name: str, way: str) -> Row:
    """One network by one way."""
    keras.config.set_image_data_format("channels_first" if way == "nchw" else "channels_last")
    model, side = network(name), SIDES[name]
    image = np.random.default_rng(1).uniform(0, 255, (1, side, side, 3)).astype("float32")
    if way == "nchw":
        image = image.transpose(0, 3, 1, 2)
    given: Any = as_tflite(model, image, way == "int8") if way in ("tflite", "int8") else model
    start = time.perf_counter()
    library = tvm_neuron.compile(given, image, target="neuron/inf2", options=EXACT)
    seconds = time.perf_counter() - start
    report = tvm_neuron.report(library)
    kinds = sorted({row.op for row in report.placement if row.where == "cpu"})
    cpu = f"{sum(row.where == 'cpu' for row in report.placement)} {' '.join(kinds)}".removesuffix(" ")
    core = sum(row.where != "cpu" for row in report.placement)
    if way == "nchw":
        return Row(name, core, cpu, None, report.latency_us, seconds)
    executor = library["default"](tvm.cpu())
    executor.set_input(executor.inputs[0].name, image)
    executor.run()
    found = executor.get_output(0).numpy()
    wanted = interpreted(given, image) if way == "int8" else model(image, training=False).numpy()
    error = float(np.linalg.norm(found - wanted) / np.linalg.norm(wanted))
    return Row(name, core, cpu, error, report.latency_us, seconds)


def as_tflite(model: keras.Model, image: np.ndarray, is_quantised: bool) -> bytes:
    """The file that TensorFlow writes of it."""
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    if is_quantised:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: _calibration(image)
    return bytes(converter.convert())


def interpreted(content: bytes, image: np.ndarray) -> np.ndarray:
    """What TensorFlow's own interpreter gives."""
    interpreter = tf.lite.Interpreter(model_content=content)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], image)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def _calibration(image: np.ndarray) -> Iterator[list[np.ndarray]]:
    for seed in range(4):
        yield [np.random.default_rng(seed).uniform(0, 255, image.shape).astype("float32")]


def main() -> None:
    """Measures, prints each row as it comes."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.keras_applications")
    parser.add_argument("names", nargs="*", choices=[[], *SIDES], metavar="NAME", help=", ".join(SIDES))
    parser.add_argument("--way", choices=WAYS, default="keras")
    options = parser.parse_args()
    print(f"| {' | '.join(each.name for each in fields(Row))} |\n|---|---:|---|---:|---:|---:|")
    for name in options.names or SIDES:
        try:
            cells = astuple(measure(name, options.way))
            shown = [f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in cells]
        except NeuronError as error:
            shown = [name, f"refused: {error}"]
        print(f"| {' | '.join(shown)} |", flush=True)
        keras.backend.clear_session()
        gc.collect()


if __name__ == "__main__":
    main()
