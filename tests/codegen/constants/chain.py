"""Random chains of operators on constants, and what onnxruntime makes of each operator."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from tests.codegen.constants import elementwise, moves, reductions
from tests.codegen.constants.drawing import Array, Drawing

Maker = Callable[[Drawing], onnx.NodeProto | None]
MAKERS: tuple[Maker, ...] = (
    elementwise.unary, elementwise.unary, elementwise.binary, elementwise.binary, elementwise.binary,
    elementwise.where, elementwise.clip, elementwise.cast, elementwise.cast, moves.concat, moves.concat, moves.split,
    moves.slice_, moves.gather, moves.nd, moves.nd, moves.scatter, moves.pad, moves.shapes, moves.shapes,
    reductions.reduce, reductions.reduce, reductions.along, moves.made, elementwise.quantise, elementwise.products,
    reductions.images,
)  # fmt: skip
_OUTPUTS = {"Split": 2, "TopK": 2}


@dataclass(frozen=True)
class Step:
    """A node, and what onnxruntime makes of it."""

    node: onnx.NodeProto
    results: dict[str, Array]


class RandomConstants(Drawing):
    """`steps` operators on constants, drawn with `seed`. A node that onnxruntime refuses is drawn again."""

    def __init__(self, seed: int, steps: int = 6) -> None:
        super().__init__(seed)
        self.steps: list[Step] = []
        while len(self.steps) < steps:
            self._try()

    def model(self) -> onnx.ModelProto:
        """All of it; every result is an output."""
        nodes = [_constant(name, value) for name, value in self.constants.items()]
        nodes += [step.node for step in self.steps]
        outputs = {name: value for step in self.steps for name, value in step.results.items()}
        return _model(nodes, outputs, self.opset)

    def _try(self) -> None:
        self.given = {}
        maker = MAKERS[self.rng.integers(len(MAKERS))]
        node = maker(self)
        known = {**self.values, **self.given}
        if node is None or any(known[name].size > 4000 for name in node.input if name):
            return
        number = len(self.steps)
        node.name = f"{node.op_type}{number}"
        del node.output[:]
        node.output.extend([f"v{number}.{i}" for i in range(_OUTPUTS.get(node.op_type, 1))])
        results = run_node(node, {name: known[name] for name in node.input if name}, self.opset)
        if results is None or any(value.size > 4000 for value in results.values()):
            return
        self.settle()
        self.values |= results
        self.steps.append(Step(node, results))


def _constant(name: str, value: Array) -> onnx.NodeProto:
    return helper.make_node("Constant", [], [name], name=name, value=numpy_helper.from_array(value, name))


def _model(nodes: Sequence[onnx.NodeProto], outputs: dict[str, Array], opset: int) -> onnx.ModelProto:
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in outputs.items()
    ]
    graph = helper.make_graph(nodes, "constants", [], infos)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def run_node(node: onnx.NodeProto, operands: dict[str, Array], opset: int) -> dict[str, Array] | None:
    """What onnxruntime makes of one node; None where it can't."""
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in operands.items()
    ]
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output]
    graph = helper.make_graph([node], "one", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options)
        results = session.run(None, operands)
    except Exception:
        return None
    return {name: np.asarray(value) for name, value in zip(node.output, results, strict=True)}
