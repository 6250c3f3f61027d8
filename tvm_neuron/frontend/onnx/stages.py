"""Models whose shapes only their run tells, as detectors': one stage after another, each with all shapes known.

A stage is what can be imported by what is known before it runs. It ends where an operator makes as much as the data
say (NonZero, NonMaxSuppression), or reads a condition, a size or a number of iterations that it computes; what it gave
is known to the next one.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import tvm
from onnx import helper
from tvm_ffi import Array

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.onnx.checked import checked
from tvm_neuron.frontend.onnx.graphs import node_origins, read_names, real_inputs, without_unread_outputs
from tvm_neuron.frontend.onnx.left import Named


@dataclass(frozen=True)
class Given:
    """What is known of a value before a stage: its shape and dtype, and itself if there was a run."""

    shape: tuple[int, ...]
    dtype: str
    array: np.ndarray | None = None


@dataclass(frozen=True)
class Stage:
    """`mod` takes `inputs` and gives the values named in `outputs`, with their dtypes; `known` its import found.

    `left` are operators for later: they read the names `reads`, and of those `asked` the next import needs the values.
    """

    mod: tvm.IRModule
    inputs: tuple[str, ...]
    outputs: Mapping[str, str]
    known: Mapping[str, np.ndarray]
    left: tuple[Named, ...]
    reads: frozenset[str]
    asked: frozenset[str]


_LARGEST_BYTES = 2**31 - 1
"""Of what protobuf writes."""


class Stages:
    """One model, of static shapes of its inputs.

    Raises what `from_onnx` raises of the model file and its inputs; ModelError: operators don't take their operands.
    """

    def __init__(
        self, model: onnx.ModelProto | str | os.PathLike[str], shape: Mapping[str, tuple[int, ...]],
        dtype: str | dict[str, str], opset: int | None, values: Mapping[str, Any],
    ) -> None:  # fmt: skip
        self._model = checked(model, dict(shape), dtype, opset, values)
        _check_types(self._model.proto)
        graph = self._model.proto.graph
        own = {value.name: _dtype(value) for value in real_inputs(graph)}
        self.inputs = {
            name: Given(size, self._model.dtypes.get(name, own[name])) for name, size in self._model.shapes.items()
        }
        """The inputs of each call, by name."""
        self.known: Mapping[str, np.ndarray] = self._model.known
        """Values given for the others."""
        self.outputs = tuple(value.name for value in graph.output)
        """The names of the results."""

    def first(self) -> Stage:
        """The stage that the shapes of the inputs are enough for. Raises ModelError: as `from_onnx`."""
        nodes = self._model.proto.graph.node
        read = read_names(nodes) | set(self.outputs)
        named = zip((without_unread_outputs(node, read) for node in nodes), node_origins(nodes), strict=True)
        given = {name: Given(array.shape, array.dtype.name, array) for name, array in self.known.items()}
        return self._stage(tuple(named), self.inputs | given, frozenset(self.known))

    def after(self, stage: Stage, given: Mapping[str, Given]) -> Stage:
        """The next stage, for `given` values, among them all that it reads. Raises ModelError: as `from_onnx`."""
        return self._stage(stage.left, given, stage.asked)

    def _stage(self, nodes: tuple[Named, ...], given: Mapping[str, Given], asked: frozenset[str]) -> Stage:
        model = self._model
        read = read_names(node for node, _ in nodes)
        inputs = {name: value for name, value in given.items() if name in read}
        known = {name: value.array for name, value in inputs.items() if name in asked and value.array is not None}
        infos = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(value.dtype)), value.shape)
            for name, value in inputs.items()
        ]
        shapes = {name: value.shape for name, value in inputs.items()}
        dtypes = {name: value.dtype for name, value in inputs.items()}
        importer = model.importer(shapes, dtypes, known)
        mod, weights, left = importer.import_stage(model.proto.graph, model.stored, infos, nodes, model.opset)
        mod["main"] = mod["main"].with_attr("params", Array(weights.values()))
        if len(left.nodes) == len(nodes) and not left.asked - known.keys():
            names = ", ".join(f"'{origin.name}' ({origin.op})" for _, origin in left.nodes[:3])
            raise ModelError(f"the model waits for sizes that no run tells: nothing makes what {names} reads")
        reads = frozenset(read_names(node for node, _ in left.nodes))
        inner = tuple(name for name in inputs if name not in known)
        values = asked | left.asked | left.known.keys()
        return Stage(mod, inner, left.made, left.known, tuple(left.nodes), reads, values)


def _check_types(proto: onnx.ModelProto) -> None:
    """Told now, also of operators that only later stages import."""
    if proto.ByteSize() > _LARGEST_BYTES:
        return
    try:
        onnx.shape_inference.infer_shapes(proto, check_type=True, strict_mode=True)
    except onnx.shape_inference.InferenceError as error:
        raise ModelError(f"the model's operators don't fit together: {error}") from error


def _dtype(value: onnx.ValueInfoProto) -> str:
    return str(helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type).name)
