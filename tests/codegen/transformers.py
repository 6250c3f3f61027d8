"""Encoders of transformers in ONNX, as exporters write them, with random weights."""

from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import NodeProto, helper

from tests.onnx_models import Arrays, make_model


@dataclass
class Encoder:
    """Layers of self-attention with a mask and of two dense layers, each with a residual and a LayerNormalization."""

    hidden: int
    heads: int
    rows: int
    layers: int = 1
    batch: int = 1
    nodes: list[NodeProto] = field(init=False)
    weights: Arrays = field(init=False)
    random: np.random.Generator = field(init=False)

    def model(self) -> onnx.ModelProto:
        """From "x" [batch, rows, hidden] and "mask" [batch, 1, 1, rows] to "y"."""
        self.nodes, self.weights = [], {}
        self.random = np.random.default_rng(self.hidden + self.rows)
        x = "x"
        for layer in range(self.layers):
            x = self._layer(x, f"layer{layer}")
        self._add("Identity", [x], "y")
        shapes = {name: value.shape for name, value in self.inputs().items()}
        return make_model(self.nodes, shapes, ["y"], self.weights)

    def inputs(self) -> Arrays:
        """Normal numbers, and a mask of the last five rows."""
        x = np.random.default_rng(1).standard_normal((self.batch, self.rows, self.hidden)).astype(np.float32)
        mask = np.where(np.arange(self.rows) < self.rows - 5, 0, -1e4).astype(np.float32)
        return {"x": x, "mask": np.broadcast_to(mask, (self.batch, 1, 1, self.rows)).copy()}

    def _layer(self, x: str, at: str) -> str:
        attended = self._norm(self._sum(self._attention(x, f"{at}/attention"), x), f"{at}/norm0")
        wide = self._add("Relu", [self._dense(attended, 4 * self.hidden, f"{at}/wide")], f"{at}/relu")
        return self._norm(self._sum(self._dense(wide, self.hidden, f"{at}/narrow"), attended), f"{at}/norm1")

    def _attention(self, x: str, at: str) -> str:
        channels = self.hidden // self.heads
        heads = self._weight(f"{at}/heads", np.int64([self.batch, self.rows, self.heads, channels]))
        turned = {}
        for name, order in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
            split = self._add("Reshape", [self._dense(x, self.hidden, f"{at}/{name}"), heads], f"{at}/{name}/split")
            turned[name] = self._add("Transpose", [split], f"{at}/{name}/turn", perm=order)
        scores = self._add("MatMul", [turned["q"], turned["k"]], f"{at}/scores")
        root = self._weight(f"{at}/root", np.sqrt(np.float32(channels)))
        masked = self._sum(self._add("Div", [scores, root], f"{at}/scaled"), "mask")
        shares = self._add("Softmax", [masked], f"{at}/softmax", axis=-1)
        context = self._add("MatMul", [shares, turned["v"]], f"{at}/context")
        back = self._add("Transpose", [context], f"{at}/back", perm=[0, 2, 1, 3])
        flat = self._weight(f"{at}/flat", np.int64([self.batch, self.rows, self.hidden]))
        return self._dense(self._add("Reshape", [back, flat], f"{at}/joined"), self.hidden, f"{at}/out")

    def _dense(self, x: str, width: int, at: str) -> str:
        depth = 4 * self.hidden if at.endswith("narrow") else self.hidden
        weights = self.random.standard_normal((depth, width)).astype(np.float32) / np.float32(np.sqrt(depth))
        product = self._add("MatMul", [x, self._weight(f"{at}/weights", weights)], f"{at}/product")
        return self._sum(product, self._weight(f"{at}/bias", self._normal(width)))

    def _norm(self, x: str, at: str) -> str:
        scale = self._weight(f"{at}/scale", 1 + 0.1 * self._normal(self.hidden))
        return self._add("LayerNormalization", [x, scale, self._weight(f"{at}/shift", self._normal(self.hidden))], at)

    def _sum(self, a: str, b: str) -> str:
        return self._add("Add", [a, b], f"{a}+{b.rpartition('/')[2]}")

    def _normal(self, *shape: int) -> np.ndarray:
        return self.random.standard_normal(shape).astype(np.float32)

    def _weight(self, name: str, value: np.ndarray) -> str:
        self.weights[name] = np.asarray(value)
        return name

    def _add(self, op: str, inputs: list[str], output: str, **attributes: object) -> str:
        self.nodes.append(helper.make_node(op, inputs, [output], name=output, **attributes))
        return output
