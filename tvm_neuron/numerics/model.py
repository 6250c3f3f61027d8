"""Model: an ONNX model taken apart: its operators in turn, one of them alone, and the beginnings of it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from tvm_neuron.frontend.onnx.checks import check_wiring, load_model
from tvm_neuron.frontend.onnx.graphs import node_origins, read_names, real_inputs
from tvm_neuron.frontend.onnx.needs import value_operands

Arrays = dict[str, NDArray[Any]]
_OF_SHAPES = ("Shape", "Size")  # whose results are known as soon as the inputs' shapes are


@dataclass(frozen=True)
class Operator:
    """One node of the graph, under the name that the compiler knows it by."""

    name: str
    op: str
    node: onnx.NodeProto

    @cached_property
    def reads(self) -> tuple[str, ...]:
        """What it reads, its subgraphs included; among them are names that only these know."""
        return tuple(sorted(read_names([self.node]) - {""}))

    @property
    def makes(self) -> tuple[str, ...]:
        """The tensors that it makes."""
        return tuple(name for name in self.node.output if name)


@dataclass(frozen=True)
class Model:
    """A model whose inputs have the sizes of the arrays that it is to be run on."""

    proto: onnx.ModelProto

    @cached_property
    def inputs(self) -> list[onnx.ValueInfoProto]:
        """Its inputs."""
        return real_inputs(self.proto.graph)

    @cached_property
    def operators(self) -> tuple[Operator, ...]:
        """Its nodes, in their order."""
        nodes = self.proto.graph.node
        return tuple(Operator(o.name, o.op, node) for o, node in zip(node_origins(nodes), nodes, strict=True))

    @cached_property
    def weights(self) -> Arrays:
        """The initializers."""
        return {proto.name: numpy_helper.to_array(proto) for proto in self.proto.graph.initializer}

    @cached_property
    def constants(self) -> frozenset[str]:
        """The tensors that no input has a part in, but by its shape."""
        given = {value.name for value in self.inputs}
        varies = set(given)
        for one in self.operators:
            if one.op not in _OF_SHAPES and varies.intersection(one.reads):
                varies.update(one.makes)
        return frozenset({*self.weights, *(name for one in self.operators for name in one.makes)} - varies)

    @cached_property
    def read(self) -> frozenset[str]:
        """The tensors that an operator reads, or that are outputs."""
        return frozenset(v.name for v in self.proto.graph.output).union(*(one.reads for one in self.operators))

    def shown(self, operator: Operator) -> str:
        """The first of its tensors that counts."""
        return next((name for name in operator.makes if name in self.read), operator.makes[0])

    def alone(self, operator: Operator, values: Mapping[str, NDArray[Any]]) -> onnx.ModelProto:
        """One operator on exact inputs: what is known at compile time in the model is so here."""
        needed = self.constants.union(value_operands(operator.node))
        known = {name: values[name] for name in operator.reads if name in values}
        weights = {name: array for name, array in known.items() if name in needed}
        given = {name: array for name, array in known.items() if name not in needed}
        outputs = _infos({name: values[name] for name in operator.makes if name in self.read})
        return self._made([operator.node], _infos(given), outputs, weights)

    def bare(self, operator: Operator, dtypes: Mapping[str, np.dtype[Any]]) -> onnx.ModelProto:
        """One operator as a model all of whose operands are inputs, of any shape."""
        given = [_info(name, dtypes[name], None) for name in operator.reads if name in dtypes]
        return self._made([operator.node], given, [onnx.ValueInfoProto(name=name) for name in operator.makes], {})

    def beginning(self, output: str, values: Mapping[str, NDArray[Any]]) -> onnx.ModelProto:
        """As much of the model as `output` needs, which is its only output."""
        kept = [one for one in self.operators if one.name in self.needed_for(output)]
        read = {name for one in kept for name in one.reads}
        given = [value for value in self.inputs if value.name in read]
        weights = {name: array for name, array in self.weights.items() if name in read}
        return self._made([one.node for one in kept], given, _infos({output: values[output]}), weights)

    def needed_for(self, output: str) -> frozenset[str]:
        """The names of the operators that have a part in a tensor."""
        wanted, found = {output}, set()
        for one in reversed(self.operators):
            if wanted.intersection(one.makes):
                found.add(one.name)
                wanted.update(one.reads)
        return frozenset(found)

    def _made(
        self, nodes: Iterable[onnx.NodeProto], inputs: Iterable[onnx.ValueInfoProto],
        outputs: Iterable[onnx.ValueInfoProto], weights: Mapping[str, NDArray[Any]],
    ) -> onnx.ModelProto:  # fmt: skip
        protos = [numpy_helper.from_array(array, name) for name, array in weights.items()]
        graph = helper.make_graph(list(nodes), "part", list(inputs), list(outputs), protos)
        whole = self.proto
        return helper.make_model(
            graph, opset_imports=whole.opset_import, ir_version=whole.ir_version, functions=whole.functions
        )


def load(model: Any) -> onnx.ModelProto:
    """The model at a path, or a copy of a ModelProto, with all weights in it.

    Raises:
        ModelError: it can't be read, or is no ONNX model.
    """
    loaded, stored = load_model(model)
    found = onnx.ModelProto()
    found.CopyFrom(loaded)
    for number, read in stored.items():
        found.graph.initializer[number].raw_data = read().tobytes()
    check_wiring(found.graph)
    return found


def _infos(arrays: Mapping[str, NDArray[Any]]) -> list[onnx.ValueInfoProto]:
    return [_info(name, array.dtype, array.shape) for name, array in arrays.items()]


def _info(name: str, dtype: np.dtype[Any], shape: tuple[int, ...] | None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), shape)
