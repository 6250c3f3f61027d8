"""Rotary embeddings of any kind, of heads of any size: beside onnxruntime, and computed for all heads at once."""

from dataclasses import dataclass

import numpy as np
import onnx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.codegen.nodes_and_weights import NodesAndWeights
from tests.codegen.on_core import PRECISIONS, check
from tests.onnx_models import Arrays, make_model
from tests.stages.networks import compile_model
from tvm_neuron.codegen.steps import without

HIDDEN = 48


@dataclass
class Rotary(NodesAndWeights):
    """Scores of queries and keys, `rotated` elements of each head of `size` of which are turned by angles.

    `pairs`: neighbours change places, not halves. The angles are known, or made of the input "position". What is turned
    may be `scaled`, by a number for each head or, of the input "scales", for each row. With `is_read_else`, what of a
    head does not change places is read by others, too.
    """

    heads: int
    size: int
    rows: int
    rotated: int
    is_known: bool = True
    pairs: bool = False
    scaled: str = ""
    is_read_else: bool = False

    def model(self) -> onnx.ModelProto:
        """From "x" to "y"."""
        self.nodes, self.weights = [], {}
        cos, sin = self._angles()
        query, key = (self._turned(self._projected(name), cos, sin, name) for name in "qk")
        turned = self._add("Transpose", [key], perm=[0, 1, 3, 2])
        self._add("MatMul", [query, turned], "y")
        outputs = ["y"]
        if self.is_read_else:
            (still,) = (node.output[0] for node in self.nodes if node.name == "q_still")
            outputs.append(self._add("ReduceMax", [still, self._weight(np.int64([2, 3]))], "most"))
        shapes = {name: value.shape for name, value in self.inputs().items()}
        return make_model(self.nodes, shapes, outputs, self.weights)

    def inputs(self) -> Arrays:
        """Random ones."""
        rng = np.random.default_rng(self.rows)
        found = {"x": rng.standard_normal((1, self.rows, HIDDEN)).astype(np.float32)}
        found |= {"scales": rng.standard_normal((self.rows, 1)).astype(np.float32)} if self.scaled == "row" else {}
        return found if self.is_known else found | {"position": np.arange(self.rows, dtype=np.float32)[:, None] + 3}

    def _angles(self) -> tuple[str, str]:
        """Cosines and sines [rows, rotated], each angle twice."""
        steps = (100.0 ** -np.arange(0, 1, 2 / self.rotated)).astype(np.float32)[None]
        places = np.repeat(np.arange(steps.size), 2) if self.pairs else np.tile(np.arange(steps.size), 2)
        if self.is_known:
            angles = (np.arange(self.rows)[:, None] * steps)[:, places]
            return self._weight(np.cos(angles, dtype=np.float32)), self._weight(np.sin(angles, dtype=np.float32))
        once = self._add("Mul", ["position", self._weight(steps)])
        cos, sin = self._add("Cos", [once]), self._add("Sin", [once])
        twice = [self._add("Gather", [each, self._weight(places)], axis=1) for each in (cos, sin)]
        return twice[0], twice[1]

    def _projected(self, name: str) -> str:
        width = self.heads * self.size
        weight = np.random.default_rng(ord(name)).standard_normal((HIDDEN, width)) / HIDDEN**0.5
        made = self._add("MatMul", ["x", self._weight(weight.astype(np.float32))], name)
        apart = self._add("Reshape", [made, self._weight(np.int64([1, self.rows, self.heads, self.size]))])
        return self._add("Transpose", [apart], perm=[0, 2, 1, 3])

    def _turned(self, x: str, cos: str, sin: str, name: str) -> str:
        first = self._slice(x, 0, self.rotated)
        if self.pairs:
            even, odd = (self._slice(first, at, self.rotated, 2) for at in (0, 1))
            shape = np.int64([1, self.heads, self.rows, self.rotated // 2, 1])
            parts = [self._add("Reshape", [part, self._weight(shape)]) for part in (self._add("Neg", [odd]), even)]
            beside = self._add("Concat", parts, axis=4)
            shape = np.int64([1, self.heads, self.rows, self.rotated])
            other = self._add("Reshape", [beside, self._weight(shape)])
        else:
            half = self.rotated // 2
            low, high = self._slice(first, 0, half), self._slice(first, half, self.rotated)
            other = self._add("Concat", [self._add("Neg", [high]), low], axis=3)
        left, right = self._add("Mul", [first, cos], f"{name}_still"), self._add("Mul", [other, sin])
        found = self._add("Add", [left, right])
        if self.scaled == "head":
            by = np.linspace(1, 2, self.heads, dtype=np.float32)[:, None, None]
            found = self._add("Mul", [found, self._weight(by)])
        elif self.scaled == "row":
            found = self._add("Mul", [found, "scales"])
        if self.rotated == self.size:
            return found
        return self._add("Concat", [found, self._slice(x, self.rotated, self.size)], axis=3)

    def _slice(self, x: str, start: int, end: int, step: int = 1) -> str:
        return self._add("Slice", [x, *(self._weight(np.int64([n])) for n in (start, end, 3, step))])


def _of_size(size: int) -> st.SearchStrategy[Rotary]:
    return st.builds(
        Rotary, st.integers(1, 9), st.just(size), st.sampled_from([1, 2, 33, 130]), st.sampled_from([size, size // 2]),
        st.booleans(), st.booleans(), st.sampled_from(["", "head", "row"]), st.booleans(),
    )  # fmt: skip


@pytest.mark.slow
@settings(max_examples=6)
@example(Rotary(4, 64, 1, 64, is_known=False), ("inf2", "none"))
@example(Rotary(5, 80, 20, 40, pairs=True), ("inf2", "all"))
@example(Rotary(12, 64, 3, 32, is_known=False, pairs=True), ("inf1", "all"))  # more heads than one matrix is for
@example(Rotary(4, 64, 3, 32, scaled="row"), ("inf2", "none"))  # the rest of each head is not scaled
@example(Rotary(4, 64, 1, 64, False, scaled="head"), ("inf2", "none"))
@example(Rotary(4, 64, 3, 64, is_read_else=True), ("inf2", "none"))
@given(st.sampled_from([8, 32, 64, 80, 128]).flatmap(_of_size), st.sampled_from(PRECISIONS))
def test_rotary_embeddings(rotary: Rotary, precision: tuple[str, str]) -> None:
    check(rotary.model(), rotary.inputs(), *precision, roundings=12)


@pytest.mark.parametrize(
    "rotary", [Rotary(4, 64, 1, 64, False), Rotary(4, 64, 1, 32, False, True), Rotary(4, 64, 64, 32)], ids=repr
)
def test_heads_together(rotary: Rotary) -> None:
    """Orders and chunks are left as they are: what is quicker may have more instructions."""
    usual = "list_schedules", "chunks_apart"
    with without(*usual):
        together = compile_model(rotary.model(), "neuron/inf2").program
    with without("flat_heads", *usual):
        apart = compile_model(rotary.model(), "neuron/inf2").program
    assert len(list(together.instructions())) < len(list(apart.instructions()))
    check(rotary.model(), rotary.inputs(), "inf2", "all", roundings=12)
