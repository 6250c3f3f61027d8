"""Attention of which several query heads share a head of keys and values: any ratio, prefill and steps with a cache."""

from dataclasses import dataclass

import numpy as np
import onnx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.codegen.graphs import graph_of
from tests.codegen.nodes_and_weights import NodesAndWeights
from tests.codegen.on_core import PRECISIONS, check
from tests.onnx_models import Arrays, make_model
from tvm_neuron.codegen.precision import DEFAULT
from tvm_neuron.codegen.simplify import kernels_by_layout
from tvm_neuron.codegen.tuning import USUAL
from tvm_neuron.hw import load_device
from tvm_neuron.schedule.kernel import Product, Transposition
from tvm_neuron.schedule.rule import load_rules

WAYS = ("expand", "gather", "tile", "broadcast")


@dataclass
class Attention(NodesAndWeights):
    """Between two dense layers of `hidden` channels; keys and values of `past` rows are inputs, and outputs with ours.

    `way`: how keys and values come to all heads of their group, as torch's exporters, or by a MatMul that broadcasts.
    """

    shared: int
    ratio: int
    channels: int
    rows: int
    past: int = 0
    batch: int = 1
    way: str = "expand"
    hidden: int = 24

    def model(self) -> onnx.ModelProto:
        """From "x" (and "past_k", "past_v") to "y" (and "k", "v")."""
        self.nodes, self.weights = [], {}
        heads, total = self.shared * self.ratio, self.past + self.rows
        q = self._heads("q", heads)
        k, v = (self._with_past(self._heads(f"new_{name}", self.shared), name) for name in "kv")
        if self.way == "broadcast":
            q = self._reshape(q, [self.batch, self.shared, self.ratio, self.rows, self.channels])
            k, v = (self._reshape(x, [self.batch, self.shared, 1, total, self.channels]) for x in (k, v))
        else:
            k, v = self._repeated(k, total), self._repeated(v, total)
        order = [*range(3 + (self.way == "broadcast"))]
        turned = self._add("Transpose", [k], perm=[*order[:-1], order[-1] + 1, order[-1]])
        root = self._weight(np.float32(self.channels**-0.5))
        scores = self._add("Mul", [self._add("MatMul", [q, turned]), root])
        hidden_rows = np.triu(np.full((self.rows, total), -1e4, np.float32), 1 + self.past)
        shares = self._add("Softmax", [self._add("Add", [scores, self._weight(hidden_rows)])], axis=-1)
        context = self._add("MatMul", [shares, v])
        if self.way == "broadcast":
            context = self._reshape(context, [self.batch, heads, self.rows, self.channels])
        side = self._add("Transpose", [context], perm=[0, 2, 1, 3])
        self._dense(self._reshape(side, [self.batch, self.rows, heads * self.channels]), heads, "y")
        shapes = {name: value.shape for name, value in self.inputs().items()}
        return make_model(self.nodes, shapes, ["y", "k", "v"] if self.past else ["y"], self.weights)

    def inputs(self) -> Arrays:
        """Random ones."""
        rng, of_past = np.random.default_rng(1), (self.batch, self.shared, self.past, self.channels)
        shapes = {"x": (self.batch, self.rows, self.hidden)}
        shapes |= {"past_k": of_past, "past_v": of_past} if self.past else {}
        return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}

    def _heads(self, name: str, heads: int) -> str:
        made = self._dense("x", heads, f"{name}_rows")
        split = self._reshape(made, [self.batch, self.rows, heads, self.channels])
        return self._add("Transpose", [split], name, perm=[0, 2, 1, 3])

    def _dense(self, x: str, heads: int, name: str) -> str:
        shape = (self.hidden, heads * self.channels)
        shape = shape[::-1] if name == "y" else shape
        weight = np.random.default_rng(len(self.nodes)).standard_normal(shape) / shape[0] ** 0.5
        return self._add("MatMul", [x, self._weight(weight.astype(np.float32))], name)

    def _with_past(self, new: str, name: str) -> str:
        return self._add("Concat", [f"past_{name}", new], name, axis=2) if self.past else new

    def _repeated(self, x: str, total: int) -> str:
        if self.way == "gather":
            places = self._weight(np.repeat(np.arange(self.shared), self.ratio))
            return self._add("Gather", [x, places], axis=1)
        apart = self._reshape(x, [self.batch, self.shared, 1, total, self.channels])
        if self.way == "tile":
            every = self._add("Tile", [apart, self._weight(np.int64([1, 1, self.ratio, 1, 1]))])
        else:
            shape = np.int64([self.batch, self.shared, self.ratio, total, self.channels])
            every = self._add("Expand", [apart, self._weight(shape)])
        return self._reshape(every, [self.batch, self.shared * self.ratio, total, self.channels])


ATTENTIONS = st.builds(
    Attention, st.integers(1, 4), st.integers(1, 8), st.sampled_from([4, 16, 32, 40, 64, 128]),
    st.sampled_from([1, 2, 5, 16, 33, 130]), st.sampled_from([0, 0, 1, 33, 129]), st.integers(1, 2),
    st.sampled_from(WAYS),
)  # fmt: skip


@pytest.mark.slow
@settings(max_examples=5)
@example(Attention(2, 4, 32, 16), ("inf1", "all"))  # heads of a group came onto the same partitions
@example(Attention(2, 4, 32, 1, 33), ("inf2", "none"))
@given(ATTENTIONS, st.sampled_from(PRECISIONS))
def test_grouped_attention(attention: Attention, precision: tuple[str, str]) -> None:
    check(attention.model(), attention.inputs(), *precision, roundings=16)


@pytest.mark.parametrize(("heads", "channels", "runs"), [(8, 32, 4), (4, 64, 2), (2, 128, 1)])
def test_heads_leave_the_array_in_as_many_instructions_as_they_have_runs_of_partitions(
    heads: int, channels: int, runs: int
) -> None:
    """Those of 64 channels lie in two, whichever chunk of 128 partitions they are in."""
    model = Attention(heads, 1, channels, 8, hidden=256).model()
    device = load_device("inf2")
    usual, *others = kernels_by_layout(graph_of(model), load_rules(), device, DEFAULT, USUAL, is_quick=False)
    last = [kernel for kernel in usual[0] if isinstance(kernel.root, Product)][-1]
    assert list(last.stepped.values()) == [runs]
    columns = sum(isinstance(kernel.root, Transposition) for kernel in usual[0])
    assert all(sum(isinstance(k.root, Transposition) for k in kernels) > columns for kernels, _ in others)
    assert bool(others) == (runs > 2), "turning rows takes less by its price where that is more than two instructions"
