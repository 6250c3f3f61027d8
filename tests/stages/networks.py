"""A small network of everything that the large ones are made of, and the way from ONNX to a NEFF and its outputs."""

from typing import Any

import numpy as np
import onnx
import tvm
from onnx import helper

from tests.onnx_models import Arrays, make_model
from tvm_neuron import BuildOptions, neff, relay, runtime
from tvm_neuron.isa.dtypes import DTYPES
from tvm_neuron.neff import Neff
from tvm_neuron.sim import Machine


def small_network(batch: int = 1, channels: int = 32, size: int = 20) -> onnx.ModelProto:
    """Convolutions (strided, grouped, residual), batch norm, pools, concatenation, LRN, gemm and softmax."""
    rng = np.random.default_rng(7)
    half = channels // 2

    def normal(*shape: int) -> np.ndarray:
        return (rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)

    weights = {
        "w1": normal(channels, 3, 3, 3), "b1": normal(channels), "scale": rng.uniform(0.5, 1.5, channels).astype("f"),
        "shift": normal(channels), "mean": normal(channels), "var": rng.uniform(0.5, 1.5, channels).astype("f"),
        "w2": normal(channels, channels, 3, 3), "w3": normal(channels, channels // 4, 3, 3), "b3": normal(channels),
        "w4": normal(half, channels, 1, 1), "w5": normal(10, (channels + half) * (size // 4) ** 2), "b5": normal(10),
    }  # fmt: skip
    same = {"pads": [1, 1, 1, 1], "kernel_shape": [3, 3]}
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["conv1"], name="conv1", strides=[2, 2], **same),
        helper.make_node("BatchNormalization", ["conv1", "scale", "shift", "mean", "var"], ["norm"], name="norm"),
        helper.make_node("Relu", ["norm"], ["relu1"], name="relu1"),
        helper.make_node("MaxPool", ["relu1"], ["pool1"], name="pool1", strides=[2, 2], **same),
        helper.make_node("Conv", ["pool1", "w2"], ["conv2"], name="conv2", **same),
        helper.make_node("Add", ["conv2", "pool1"], ["sum"], name="sum"),
        helper.make_node("Relu", ["sum"], ["relu2"], name="relu2"),
        helper.make_node("Conv", ["relu2", "w3", "b3"], ["conv3"], name="conv3", group=4, **same),
        helper.make_node("Conv", ["relu2", "w4"], ["conv4"], name="conv4"),
        helper.make_node("Concat", ["conv3", "conv4"], ["concat"], name="concat", axis=1),
        helper.make_node("LRN", ["concat"], ["lrn"], name="lrn", size=5, alpha=0.5, beta=0.75, bias=1.0),
        helper.make_node("Flatten", ["lrn"], ["flat"], name="flatten"),
        helper.make_node("Gemm", ["flat", "w5", "b5"], ["logits"], name="gemm", transB=1),
        helper.make_node("Softmax", ["logits"], ["y"], name="softmax", axis=1),
    ]
    return make_model(nodes, {"x": [batch, 3, size, size]}, ["y"], weights)


def images(batch: int = 1, size: int = 20) -> Arrays:
    """Random inputs of the network."""
    return {"x": np.random.default_rng(batch).standard_normal((batch, 3, size, size)).astype(np.float32)}


def compile_model(model: onnx.ModelProto, target: Any = "neuron", options: BuildOptions | None = None) -> Neff:
    """The one NEFF that the model becomes."""
    mod, params = relay.frontend.from_onnx(model)
    library = relay.build(mod, target=tvm.target.Target(target), params=params, options=options)
    (data,) = runtime.neffs(library).values()
    return neff.read(data)


def run(compiled: Neff, inputs: Arrays, mode: str = "nest", seed: int = 0) -> Arrays:
    """The outputs on the hardware model."""
    dtypes = {tensor.name: DTYPES[tensor.dtype] for tensor in compiled.program.tensors}
    machine = Machine(compiled.program, compiled.device, compiled.weights, compiled.prologue)
    return machine.run({name: array.astype(dtypes[name]) for name, array in inputs.items()}, mode, seed)


def conv_relu_conv() -> onnx.ModelProto:
    """Two convolutions around a Relu, in a few instructions."""
    rng = np.random.default_rng(3)
    weights = {
        "w1": (rng.standard_normal((40, 8, 3, 3)) / 8).astype(np.float32),
        "b1": rng.standard_normal(40).astype(np.float32),
        "w2": (rng.standard_normal((16, 40, 1, 1)) / 6).astype(np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c"], name="conv1", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"], name="relu"),
        helper.make_node("Conv", ["r", "w2"], ["y"], name="conv2"),
    ]
    return make_model(nodes, {"x": [1, 8, 10, 10]}, ["y"], weights)


def residual_network(batch: int = 1, channels: int = 32, size: int = 48) -> onnx.ModelProto:
    """A chain of convolutions on large images beside which the first one's result must be kept."""
    rng = np.random.default_rng(5)
    spread = 1.4 / np.sqrt(channels * 9)
    weights = {f"w{i}": (rng.standard_normal((channels, channels, 3, 3)) * spread).astype("f") for i in range(1, 4)}
    weights["w0"] = (rng.standard_normal((channels, 3, 3, 3)) / 5).astype(np.float32)
    nodes = []
    last = "x"
    for i in range(4):
        nodes.append(helper.make_node("Conv", [last, f"w{i}"], [f"c{i}"], name=f"conv{i}", pads=[1, 1, 1, 1]))
        nodes.append(helper.make_node("Relu", [f"c{i}"], [f"r{i}"], name=f"relu{i}"))
        last = f"r{i}"
    nodes.append(helper.make_node("Add", ["r0", "r3"], ["sum"], name="sum"))
    nodes.append(helper.make_node("MaxPool", ["sum"], ["y"], name="pool", kernel_shape=[2, 2], strides=[2, 2]))
    return make_model(nodes, {"x": [batch, 3, size, size]}, ["y"], weights)
