"""from_coreml: the networks of CoreML's .mlmodel files (its `neuralNetwork` kinds), written as ONNX."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import tvm
from onnx import helper, numpy_helper

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.onnx import from_onnx
from tvm_neuron.frontend.packages import needed

_OPSET, _IR_VERSION = 18, 9
_KINDS = ("neuralNetwork", "neuralNetworkClassifier", "neuralNetworkRegressor")


def from_coreml(
    model: Any, shape: Mapping[str, Sequence[int]] | None = None
) -> tuple[tvm.IRModule, dict[str, tvm.runtime.Tensor]]:
    """The module and weights of a `coremltools.models.MLModel`, or of the file at a path.

    `shape` gives the inputs' shapes with the batch first; without it they are one of what the model says. Operators
    have the names of its layers.

    Raises ModelError: the package coremltools is missing, it is another kind of model, a layer is unknown.
    """
    tools = needed("coremltools", "from_coreml")
    if isinstance(model, str | os.PathLike):
        try:
            spec = tools.utils.load_spec(os.fspath(model))
        except Exception as error:  # protobuf's own, for a file of another kind
            raise ModelError(f"from_coreml: '{model}' can't be read as a CoreML model") from error
    elif hasattr(model, "get_spec"):
        spec = model.get_spec()
    else:
        raise ModelError(f"from_coreml takes a coremltools.models.MLModel or a path, got {type(model).__name__}")
    kind = spec.WhichOneof("Type")
    if kind not in _KINDS:
        raise ModelError(f"from_coreml: it is a model of kind '{kind}'; networks of layers ({_KINDS[0]}) are read")
    network = _Network(getattr(spec, kind))
    inputs = {each.name: tuple((shape or {}).get(each.name) or _shape_of(each)) for each in spec.description.input}
    outputs = [name for each in spec.description.output if (name := each.name) in network.made]
    return from_onnx(network.model(inputs, outputs or [network.last]))


def _shape_of(described: Any) -> tuple[int, ...]:
    kind = described.type.WhichOneof("Type")
    if kind == "imageType":
        image = described.type.imageType
        return (1, 1 if image.colorSpace == image.ColorSpace.Value("GRAYSCALE") else 3, image.height, image.width)
    if kind == "multiArrayType":
        return (1, *described.type.multiArrayType.shape)
    raise ModelError(f"from_coreml: input '{described.name}' is of kind {kind}; give images or arrays of numbers")


class _Network:
    """The layers as nodes of ONNX, one after the other."""

    def __init__(self, network: Any) -> None:
        self._nodes: list[onnx.NodeProto] = []
        self._weights: list[onnx.TensorProto] = []
        self._renamed: dict[str, str] = {}
        self.made: list[str] = []
        for each in network.preprocessing:
            self._preprocess(each, network.layers[0].input[0])
        for layer in network.layers:
            kind = layer.WhichOneof("layer")
            write = _LAYERS.get(kind)
            if write is None:
                raise ModelError(f"from_coreml: layer '{layer.name}' is a {kind}; known are {', '.join(_LAYERS)}")
            write(self, layer, getattr(layer, kind))
            self.made += layer.output

    @property
    def last(self) -> str:
        """The output of the last layer."""
        return self.made[-1]

    def model(self, inputs: Mapping[str, Sequence[int]], outputs: Sequence[str]) -> onnx.ModelProto:
        """The whole as ONNX."""
        taken = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, s) for n, s in inputs.items()]
        given = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in outputs]
        graph = helper.make_graph(self._nodes, "coreml", taken, given, self._weights)
        opset = helper.make_opsetid("", _OPSET)
        return onnx.shape_inference.infer_shapes(
            helper.make_model(graph, opset_imports=[opset], ir_version=_IR_VERSION)
        )

    def weight(self, name: str, values: Any, shape: Sequence[int]) -> str:
        """An initializer."""
        self._weights.append(numpy_helper.from_array(np.asarray(values, "float32").reshape(shape), name))
        return name

    def stored(self, layer: Any, name: str, params: Any, shape: Sequence[int]) -> str:
        """An initializer from CoreML's own way to keep weights.

        Raises ModelError: they are quantised, or not as many as the layer has.
        """
        values = np.array(params.floatValue, "float32")
        if params.float16Value:
            values = np.frombuffer(params.float16Value, "float16").astype("float32")
        if values.size != np.prod(shape):
            raise ModelError(f"from_coreml: '{name}' of layer '{layer.name}' has {values.size} floats, not {shape}")
        return self.weight(f"{layer.name}.{name}", values, shape)

    def node(self, layer: Any, kind: str, inputs: Sequence[str], **attributes: Any) -> None:
        """A node that gives the layer's outputs."""
        self.step(kind, inputs, list(layer.output), str(layer.name), **attributes)

    def step(self, kind: str, inputs: Sequence[str], outputs: Sequence[str], name: str, **attributes: Any) -> None:
        """A node."""
        read = [self._renamed.get(each, each) for each in inputs]
        self._nodes.append(helper.make_node(kind, read, list(outputs), name, **attributes))

    def _preprocess(self, preprocessing: Any, first: str) -> None:
        kind = preprocessing.WhichOneof("preprocessor")
        if kind != "scaler":
            raise ModelError(f"from_coreml: preprocessing by {kind} is not known; images are scaled alone")
        scaler = preprocessing.scaler
        name = preprocessing.featureName or first
        scale = self.weight(f"{name}.scale", scaler.channelScale, ())
        bias = self.weight(f"{name}.bias", [scaler.redBias, scaler.greenBias, scaler.blueBias], (1, 3, 1, 1))
        self.step("Mul", [name, scale], [f"{name}.scaled"], f"{name}.scale")
        self.step("Add", [f"{name}.scaled", bias], [f"{name}.preprocessed"], f"{name}.bias")
        self._renamed[name] = f"{name}.preprocessed"


def _window(layer: Any, params: Any) -> dict[str, Any]:
    """Padding as ONNX has it."""
    kind = params.WhichOneof("ConvolutionPaddingType" if hasattr(params, "nGroups") else "PoolingPaddingType")
    strides = [int(each) for each in params.stride] or [1, 1]
    if kind == "same":
        heavy = params.same.asymmetryMode == params.same.SamePaddingMode.Value("TOP_LEFT_HEAVY")
        return {"strides": strides, "auto_pad": "SAME_LOWER" if heavy else "SAME_UPPER"}
    if kind == "includeLastPixel":
        amounts = list(params.includeLastPixel.paddingAmounts) or [0, 0]
        return {"strides": strides, "pads": [*amounts, *amounts], "ceil_mode": 1}
    borders = params.valid.paddingAmounts.borderAmounts
    begin, end = [int(b.startEdgeSize) for b in borders] or [0, 0], [int(b.endEdgeSize) for b in borders] or [0, 0]
    return {"strides": strides, "pads": [*begin, *end]}


def _convolution(network: _Network, layer: Any, params: Any) -> None:
    if params.isDeconvolution:
        raise ModelError(f"from_coreml: layer '{layer.name}' is a deconvolution, which is not known yet")
    kernel = [int(each) for each in params.kernelSize] or [3, 3]
    shape = (params.outputChannels, params.kernelChannels, *kernel)
    inputs = [layer.input[0], network.stored(layer, "weights", params.weights, shape)]
    if params.hasBias:
        inputs.append(network.stored(layer, "bias", params.bias, (params.outputChannels,)))
    dilations = [int(each) for each in params.dilationFactor] or [1, 1]
    network.node(
        layer, "Conv", inputs, group=max(int(params.nGroups), 1), dilations=dilations, kernel_shape=kernel,
        **_window(layer, params),
    )  # fmt: skip


def _pooling(network: _Network, layer: Any, params: Any) -> None:
    kind = params.PoolingType.Name(params.type)
    operator = {"MAX": "MaxPool", "AVERAGE": "AveragePool"}.get(kind)
    if operator is None:
        raise ModelError(f"from_coreml: layer '{layer.name}' pools by {kind}; MAX and AVERAGE are known")
    if params.globalPooling:
        network.node(layer, f"Global{operator}", layer.input)
        return
    more = {"count_include_pad": int(not params.avgPoolExcludePadding)} if kind == "AVERAGE" else {}
    size = [int(each) for each in params.kernelSize] or [3, 3]
    network.node(layer, operator, layer.input, kernel_shape=size, **_window(layer, params), **more)


def _activation(network: _Network, layer: Any, params: Any) -> None:
    kind = params.WhichOneof("NonlinearityType")
    chosen = getattr(params, kind)
    if kind == "linear":
        scaled = f"{layer.name}.scaled"
        network.step("Mul", [layer.input[0], network.weight(f"{layer.name}.alpha", chosen.alpha, ())], [scaled], scaled)
        network.node(layer, "Add", [scaled, network.weight(f"{layer.name}.beta", chosen.beta, ())])
    elif kind == "PReLU":
        slopes = np.array(chosen.alpha.floatValue)
        network.node(layer, "PRelu", [layer.input[0], network.weight(f"{layer.name}.alpha", slopes, (-1, 1, 1))])
    elif kind in _ACTIVATIONS:
        operator, names = _ACTIVATIONS[kind]
        network.node(layer, operator, layer.input, **{name: float(getattr(chosen, name)) for name in names})
    else:
        raise ModelError(f"from_coreml: activation {kind} of layer '{layer.name}' is not known")


def _batchnorm(network: _Network, layer: Any, params: Any) -> None:
    size = (params.channels,)
    names = ["gamma", "beta", *(() if params.computeMeanVar else ("mean", "variance"))]
    weights = [network.stored(layer, name, getattr(params, name), size) for name in names]
    operator = "InstanceNormalization" if params.computeMeanVar else "BatchNormalization"
    network.node(layer, operator, [layer.input[0], *weights], epsilon=float(params.epsilon) or 1e-5)


def _inner_product(network: _Network, layer: Any, params: Any) -> None:
    flat = f"{layer.name}.flat"
    network.step("Flatten", [layer.input[0]], [flat], flat, axis=1)
    weights = network.stored(layer, "weights", params.weights, (params.outputChannels, params.inputChannels))
    bias = [network.stored(layer, "bias", params.bias, (params.outputChannels,))] if params.hasBias else []
    network.node(layer, "Gemm", [flat, weights, *bias], transB=1)


def _of_two(operator: str, number: str) -> Callable[[_Network, Any, Any], None]:
    """Of several tensors, or of one and a number that the layer has."""

    def write(network: _Network, layer: Any, params: Any) -> None:
        inputs = list(layer.input)
        if len(inputs) == 1:
            inputs.append(network.weight(f"{layer.name}.{number}", getattr(params, number), ()))
        while len(inputs) > 2:
            step = f"{layer.name}.{len(inputs)}"
            network.step(operator, inputs[:2], [step], step)
            inputs[:2] = [step]
        network.node(layer, operator, inputs)

    return write


def _padding(network: _Network, layer: Any, params: Any) -> None:
    if params.WhichOneof("PaddingType") not in ("constant", None):
        raise ModelError(f"from_coreml: layer '{layer.name}' pads by copies; constants are known")
    (top, bottom), (left, right) = ((b.startEdgeSize, b.endEdgeSize) for b in params.paddingAmounts.borderAmounts)
    name = f"{layer.name}.pads"
    network._weights.append(numpy_helper.from_array(np.array([0, 0, top, left, 0, 0, bottom, right], "int64"), name))
    value = network.weight(f"{layer.name}.value", params.constant.value, ())
    network.node(layer, "Pad", [layer.input[0], name, value])


def _scale(network: _Network, layer: Any, params: Any) -> None:
    scaled = f"{layer.name}.scaled" if params.hasBias else layer.output[0]
    shape = [1, *(int(each) for each in params.shapeScale)]
    network.step("Mul", [layer.input[0], network.stored(layer, "scale", params.scale, shape)], [scaled], layer.name)
    if params.hasBias:
        bias = network.stored(layer, "bias", params.bias, [1, *(int(each) for each in params.shapeBias)])
        network.node(layer, "Add", [scaled, bias])


def _plain(operator: str, **attributes: Any) -> Callable[[_Network, Any, Any], None]:
    return lambda network, layer, params: network.node(layer, operator, layer.input, **attributes)


_ACTIVATIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "ReLU": ("Relu", ()), "leakyReLU": ("LeakyRelu", ("alpha",)), "sigmoid": ("Sigmoid", ()), "tanh": ("Tanh", ()),
    "ELU": ("Elu", ("alpha",)), "softsign": ("Softsign", ()), "softplus": ("Softplus", ()),
    "thresholdedReLU": ("ThresholdedRelu", ("alpha",)), "sigmoidHard": ("HardSigmoid", ("alpha", "beta")),
}  # fmt: skip
_LAYERS: dict[str, Callable[[_Network, Any, Any], None]] = {
    "convolution": _convolution, "pooling": _pooling, "activation": _activation, "batchnorm": _batchnorm,
    "innerProduct": _inner_product, "add": _of_two("Add", "alpha"), "multiply": _of_two("Mul", "alpha"),
    "max": _plain("Max"), "average": _plain("Mean"), "concat": _plain("Concat", axis=1),
    "flatten": _plain("Flatten", axis=1), "softmax": _plain("Softmax", axis=1), "padding": _padding, "scale": _scale,
}  # fmt: skip
