"""From an ONNX model to the graph of blocks that the code generator starts from."""

import numpy as np
import onnx
import onnxruntime

import tvm_neuron
from tests.onnx_models import make_model
from tvm_neuron import relay
from tvm_neuron.build import BuildOptions
from tvm_neuron.codegen import byoc
from tvm_neuron.codegen.legalise import legalise
from tvm_neuron.codegen.passes.canonical import canonical
from tvm_neuron.codegen.passes.moves import read_through
from tvm_neuron.codegen.passes.pieces import cut_pieces
from tvm_neuron.frontend.normalize import normalize
from tvm_neuron.partition import partition
from tvm_neuron.relay import graph_executor
from tvm_neuron.schedule.graph import Graph

SMALL = (1, 3, 4, 8, 10, 20)


def graph_of(model: onnx.ModelProto, chip: str = "inf1") -> Graph:
    """The blocks of a model that all runs on the NeuronCore."""
    mod, params = relay.frontend.from_onnx(model)
    parts = partition(normalize(mod, params), byoc.scheduler(BuildOptions(device=f"neuron/{chip}"), {}))
    return legalise(parts.mod["neuron_0"])


def read_through_graph(model: onnx.ModelProto) -> Graph:
    """The same once regions are blocks of their own, and moves are read through."""
    graph = graph_of(model)
    cut_pieces(graph)
    graph.blocks = [canonical(block) for block in graph.blocks]
    read_through(graph)
    return graph


def layer(nodes: list[onnx.NodeProto], shape: tuple[int, ...], **weights: np.ndarray) -> onnx.ModelProto:
    """A model of nodes from "x" to "y"."""
    return make_model(nodes, {"x": shape}, ["y"], weights)


def weights_moved(model: onnx.ModelProto, rng: np.random.Generator, target: str) -> int:
    """Bytes of weights that a model of one convolution from "x" moves; its result is onnxruntime's."""
    shape = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
    x = rng.standard_normal(shape).astype(np.float32)
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    mod, params = relay.frontend.from_onnx(model)
    library = relay.build(mod, target=target, params=params)
    executor = graph_executor.GraphModule(library["default"]())
    executor.run(x=x)
    error = np.linalg.norm(executor.get_output(0).numpy() - expected) / np.linalg.norm(expected)
    assert error < 2**-8  # both operands are rounded to bf16, each by up to 2^-9; the sums stay in float32
    return tvm_neuron.report(library).dram_bytes_by_kind["weight"]
