"""A small network of everything that the large ones are made of, and the way from ONNX to a NEFF and its outputs."""

from typing import Any

import numpy as np
import onnx
import tvm
from onnx import helper

from tests.onnx_models import Arrays, make_model
from tvm_neuron import neff, relay, runtime
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


def compile_model(model: onnx.ModelProto, target: Any = "neuron") -> Neff:
    """The one NEFF that the model becomes."""
    mod, params = relay.frontend.from_onnx(model)
    library = relay.build(mod, target=tvm.target.Target(target), params=params)
    (data,) = runtime.neffs(library).values()
    return neff.read(data)


def run(compiled: Neff, inputs: Arrays, mode: str = "nest", seed: int = 0) -> Arrays:
    """The outputs on the hardware model."""
    dtypes = {tensor.name: DTYPES[tensor.dtype] for tensor in compiled.program.tensors}
    machine = Machine(compiled.program, compiled.device, compiled.weights)
    return machine.run({name: array.astype(dtypes[name]) for name, array in inputs.items()}, mode, seed)
