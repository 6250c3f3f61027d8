"""From an ONNX model to the graph of blocks that the code generator starts from."""

import numpy as np
import onnx

from tests.onnx_models import make_model
from tvm_neuron import relay
from tvm_neuron.build import BuildOptions
from tvm_neuron.codegen import byoc
from tvm_neuron.codegen.legalise import legalise
from tvm_neuron.frontend.normalize import normalize
from tvm_neuron.partition import partition
from tvm_neuron.schedule.graph import Graph

SMALL = (1, 3, 4, 8, 10, 20)


def graph_of(model: onnx.ModelProto) -> Graph:
    """The blocks of a model that all runs on the NeuronCore."""
    mod, params = relay.frontend.from_onnx(model)
    parts = partition(normalize(mod, params), byoc.scheduler(BuildOptions(), {}))
    return legalise(parts.mod["neuron_0"])


def layer(nodes: list[onnx.NodeProto], shape: tuple[int, ...], **weights: np.ndarray) -> onnx.ModelProto:
    """A model of nodes from "x" to "y"."""
    return make_model(nodes, {"x": shape}, ["y"], weights)
