"""NodesAndWeights: what models that are written node by node are made of."""

from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import helper

from tests.onnx_models import Arrays


@dataclass
class NodesAndWeights:
    """A model on its way: subclasses set both to nothing, then add."""

    nodes: list[onnx.NodeProto] = field(init=False, repr=False)
    weights: Arrays = field(init=False, repr=False)

    def _reshape(self, x: str, shape: list[int]) -> str:
        return self._add("Reshape", [x, self._weight(np.int64(shape))])

    def _weight(self, value: np.ndarray) -> str:
        self.weights[f"w{len(self.weights)}"] = value
        return f"w{len(self.weights) - 1}"

    def _add(self, of_type: str, operands: list[str], name: str = "", **attributes: object) -> str:
        name = name or f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(of_type, operands, [name], name=name, **attributes))
        return name
