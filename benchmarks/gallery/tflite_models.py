"""MobileNet v1 in float32 and MobileNet v2 quantised to uint8, as TFLite files with random weights."""

import numpy as np

from benchmarks.gallery.tflite_writer import Writer

CLASSES = 1001
_NONE, _RELU6, _SAME, _VALID = 0, 3, 0, 1
_V1 = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1)]
_V2 = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]


class _Network:
    """Convolutions one after the other, over NHWC; with `is_quantised` all in uint8."""

    def __init__(self, size: int, is_quantised: bool, seed: int) -> None:
        self.writer = Writer()
        self._rng = np.random.default_rng(seed)
        self._is_quantised = is_quantised
        self.input = self.last = self._activation("input", (1, size, size, 3), -1.0, 1.0)

    def _activation(self, name: str, shape: tuple[int, ...], low: float, high: float) -> int:
        if not self._is_quantised:
            return self.writer.tensor(name, shape)
        scale = (high - low) / 255
        return self.writer.tensor(name, shape, "uint8", scale, round(-low / scale))

    def convolve(
        self, name: str, channels: int, kernel: int, stride: int, act: int, is_depthwise: bool = False
    ) -> None:
        """A convolution with a bias, which keeps the size of numbers."""
        _, height, width, depth = self.writer.tensors[self.last].shape
        shape = (1, kernel, kernel, depth) if is_depthwise else (channels, kernel, kernel, depth)
        fan_in = kernel * kernel * (1 if is_depthwise else depth)
        weights = self._rng.standard_normal(shape) * np.sqrt((2 if act else 1) / fan_in)
        bias = self._rng.standard_normal(channels) * 0.5
        out_shape = (1, -(-height // stride), -(-width // stride), channels)
        output = self._activation(name, out_shape, *((0.0, 6.0) if act else (-8.0, 8.0)))
        inputs = [self.last, *self._weights(name, weights, bias)]
        values = {"Padding": _SAME, "StrideW": stride, "StrideH": stride, "FusedActivationFunction": act}
        if is_depthwise:
            values |= {"DepthMultiplier": 1}
        kind = ("DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions") if is_depthwise else ("CONV_2D", "Conv2DOptions")
        self.writer.operator(*kind, values, inputs, output)
        self.last = output

    def _weights(self, name: str, weights: np.ndarray, bias: np.ndarray) -> list[int]:
        if not self._is_quantised:
            arrays = ((f"{name}/weights", weights), (f"{name}/bias", bias))
            return [self.writer.constant(each, array.astype("float32")) for each, array in arrays]
        scale = float(abs(weights).max() / 127)
        stored = np.clip(np.round(weights / scale) + 128, 0, 255).astype("uint8")
        whole = self.writer.tensors[self.last].scale * scale
        return [
            self.writer.constant(f"{name}/weights", stored, scale, 128),
            self.writer.constant(f"{name}/bias", np.round(bias / whole).astype("int32"), whole, 0),
        ]

    def add(self, name: str, other: int) -> None:
        """The sum with an earlier activation."""
        output = self._activation(name, tuple(self.writer.tensors[self.last].shape), -8.0, 8.0)
        self.writer.operator("ADD", "AddOptions", {"FusedActivationFunction": _NONE}, [other, self.last], output)
        self.last = output

    def classify(self) -> bytes:
        """The mean over each map, a product, and softmax unless it is quantised; the file."""
        tensor = self.writer.tensors[self.last]
        _, height, width, depth = tensor.shape
        output = self.writer.tensor("pool", (1, 1, 1, depth), tensor.dtype, tensor.scale, tensor.zero)
        values = {
            "Padding": _VALID, "StrideW": 2, "StrideH": 2, "FilterWidth": width, "FilterHeight": height,
            "FusedActivationFunction": _NONE,
        }  # fmt: skip
        self.writer.operator("AVERAGE_POOL_2D", "Pool2DOptions", values, [self.last], output)
        self.last = output
        self.convolve("logits", CLASSES, 1, 1, _NONE)
        logits = self.writer.tensors[self.last]
        flat = self.writer.tensor("flat", (1, CLASSES), logits.dtype, logits.scale, logits.zero)
        target = self.writer.constant("shape", np.array([1, CLASSES], "int32"))
        self.writer.operator("RESHAPE", "ReshapeOptions", {"NewShape": [1, CLASSES]}, [self.last, target], flat)
        if self._is_quantised:
            return self.writer.finish([self.input], [flat])
        result = self.writer.tensor("softmax", (1, CLASSES))
        self.writer.operator("SOFTMAX", "SoftmaxOptions", {"Beta": 1.0}, [flat], result)
        return self.writer.finish([self.input], [result])


def mobilenet_v1(size: int = 224) -> bytes:
    """MobileNet v1 in float32."""
    network = _Network(size, False, 5)
    network.convolve("conv0", 32, 3, 2, _RELU6)
    for number, (channels, stride) in enumerate(_V1, 1):
        depth = network.writer.tensors[network.last].shape[3]
        network.convolve(f"depthwise{number}", depth, 3, stride, _RELU6, is_depthwise=True)
        network.convolve(f"pointwise{number}", channels, 1, 1, _RELU6)
    return network.classify()


def mobilenet_v2_quantised(size: int = 224) -> bytes:
    """MobileNet v2, its activations and weights uint8 with a scale a tensor."""
    network = _Network(size, True, 6)
    network.convolve("conv0", 32, 3, 2, _RELU6)
    number = 0
    for expansion, channels, count, first_stride in _V2:
        for repeat in range(count):
            number += 1
            before = network.last
            depth = network.writer.tensors[before].shape[3]
            if expansion > 1:
                network.convolve(f"expand{number}", depth * expansion, 1, 1, _RELU6)
            stride = first_stride if repeat == 0 else 1
            network.convolve(f"depthwise{number}", depth * expansion, 3, stride, _RELU6, is_depthwise=True)
            network.convolve(f"project{number}", channels, 1, 1, _NONE)
            if repeat:
                network.add(f"add{number}", before)
    network.convolve("conv1", 1280, 1, 1, _RELU6)
    return network.classify()
