"""bring_once: what several kernels read of an input comes once from device memory, beside onnxruntime."""

from collections.abc import Iterable
from math import prod

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.codegen.on_core import PRECISIONS, check
from tests.onnx_models import make_model
from tests.stages.networks import compile_model
from tvm_neuron.isa import DmaCopy, DramTile
from tvm_neuron.neff import Neff
from tvm_neuron.program import Loop, Node


def _layer(rows: int, channels: int, of_type: str) -> onnx.ModelProto:
    """A norm, a softmax, or a norm with what it reads added to it."""
    rng, node = np.random.default_rng(channels), helper.make_node
    weights = {name: rng.standard_normal(channels).astype(np.float32) for name in ("scale", "bias")}
    if of_type == "Softmax":
        return make_model([node("Softmax", ["x"], ["y"], axis=-1)], {"x": (rows, channels)}, ["y"])
    nodes = [node("LayerNormalization", ["x", "scale", "bias"], ["n"], axis=-1), node("Tanh", ["n"], ["t"])]
    nodes.append(node("Add", ["t", "x"], ["y"]))
    return make_model(nodes, {"x": (rows, channels)}, ["y"], weights)


@pytest.mark.parametrize("of_type", ["Softmax", "LayerNormalization"])
@pytest.mark.parametrize(("rows", "channels"), [(128, 256), (70, 500), (300, 33)])
@pytest.mark.parametrize("chosen", PRECISIONS)
def test_results(rows: int, channels: int, of_type: str, chosen: tuple[str, str]) -> None:
    x = np.random.default_rng(rows).standard_normal((rows, channels)).astype(np.float32) * 3
    check(_layer(rows, channels, of_type), {"x": x}, *chosen)


@pytest.mark.parametrize("of_type", ["Softmax", "LayerNormalization"])
@pytest.mark.parametrize("chip", ["inf1", "inf2"])
def test_an_input_comes_once(of_type: str, chip: str) -> None:
    assert _read_elems(compile_model(_layer(128, 256, of_type), f"neuron/{chip}")) == 128 * 256


@pytest.mark.parametrize(("side", "is_once"), [(80, True), (100, False)])
def test_one_that_takes_much_of_the_memory_does_not_stay(side: int, is_once: bool) -> None:
    """Channels of 25 and of 39 KB of each partition, of 96, which are normed and added to themselves."""
    node, shape = helper.make_node, (1, 64, side, side)
    weights = {"scale": np.linspace(1, 2, 64, dtype=np.float32), "bias": np.linspace(0, 1, 64, dtype=np.float32)}
    nodes = [node("InstanceNormalization", ["x", "scale", "bias"], ["n"]), node("Add", ["n", "x"], ["y"])]
    compiled = compile_model(make_model(nodes, {"x": shape}, ["y"], weights), "neuron/inf1")
    assert (_read_elems(compiled) == np.prod(shape)) == is_once


def _read_elems(compiled: Neff) -> int:
    """How many elements are read of inputs in a run."""
    inputs = {number for number, tensor in enumerate(compiled.program.tensors) if tensor.kind == "input"}

    def read(nodes: Iterable[Node]) -> int:
        found = 0
        for node in nodes:
            if isinstance(node, Loop):
                found += node.count * read(node.body)
            elif isinstance(node, DmaCopy) and isinstance(node.source, DramTile) and node.source.tensor in inputs:
                found += prod(count for _, count in node.source.dims)
        return found

    return read(compiled.program.body)
