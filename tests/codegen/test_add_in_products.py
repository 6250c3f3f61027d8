"""Scores with relative positions by rows and columns of keys, which the PE array adds up, beside onnxruntime."""

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
from tvm_neuron.hw import load_device
from tvm_neuron.neff import Neff
from tvm_neuron.sim import time_program

HIDDEN = 48


@dataclass
class Positioned(NodesAndWeights):
    """Attention's shares for `heads` of `size` elements of an image of `high` x `wide` tokens, as SAM and ViTDet do.

    The `terms` are by rows of the image ("h"), by its columns ("w"), or both. Its heads lie beside each other in one
    dimension until they are parted. `also` is an output of what is on the way.
    """

    heads: int
    size: int
    high: int
    wide: int
    terms: str = "hw"
    also: str = ""

    def model(self) -> onnx.ModelProto:
        """From "x" to "y"."""
        self.nodes, self.weights = [], {}
        query, key = (self._heads(name) for name in "qk")
        scaled = self._add("Mul", [query, self._weight(np.float32(self.size**-0.5))])
        scores = self._add("MatMul", [scaled, self._add("Transpose", [key], perm=[0, 2, 1])])
        image = self._reshape(query, [self.heads, self.high, self.wide, self.size])
        shares = [self._term(image, along, extent) for along, extent in (("h", self.high), ("w", self.wide))]
        chosen = [share for along, share in zip("hw", shares, strict=True) if along in self.terms]
        every = [self.heads, self.high, self.wide, self.high, self.wide]
        if len(chosen) == 2:
            terms = self._add("Add", chosen, "terms")
        else:
            terms = self._add("Expand", [*chosen, self._weight(np.int64(every))], "terms")
        tokens = self.high * self.wide
        summed = self._add("Add", [scores, self._reshape(terms, [self.heads, tokens, tokens])])
        self._add("Softmax", [summed], "y", axis=-1)
        self.nodes = [node for node in self.nodes if node.output[0][-1] not in "hw" or node.output[0][-1] in self.terms]
        return make_model(self.nodes, {"x": (tokens, HIDDEN)}, ["y", *([self.also] if self.also else [])], self.weights)

    def inputs(self) -> Arrays:
        """Random ones."""
        return {"x": _normal(self.high * self.wide, HIDDEN)}

    def _heads(self, name: str) -> str:
        wide = self.heads * self.size
        made = self._add("MatMul", ["x", self._weight(_normal(HIDDEN, wide) / np.float32(HIDDEN**0.5))])
        parted = self._reshape(made, [self.high * self.wide, self.heads, self.size])
        return self._add("Transpose", [parted], name, perm=[1, 0, 2])

    def _term(self, image: str, along: str, extent: int) -> str:
        """Each query times the positions of its own row, or column."""
        table = self._weight(_normal(extent, extent, self.size) / np.float32(self.size**0.5))
        term = self._add("Einsum", [image, table], f"by_{along}", equation=f"nhwc,{along}kc->nhwk")
        return self._add("Unsqueeze", [term, self._weight(np.int64([4 if along == "h" else 3]))], f"wide_{along}")


def _normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def _compiled(model: onnx.ModelProto) -> Neff:
    return compile_model(model, "neuron/inf2")


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    sizes=st.tuples(st.integers(1, 3), st.sampled_from([8, 20, 32, 64, 80]), st.integers(2, 9), st.integers(2, 9)),
    terms=st.sampled_from(["hw", "h", "w"]),
    also=st.sampled_from(["", "", "terms", "q"]),
    chosen=st.sampled_from(PRECISIONS),
)
@example(sizes=(3, 64, 14, 14), terms="hw", also="", chosen=("inf2", "all"))
@example(sizes=(2, 80, 5, 40), terms="hw", also="", chosen=("inf2", "none"))
@example(sizes=(1, 64, 14, 14), terms="h", also="", chosen=("inf1", "all"))
def test_shares(sizes: tuple[int, int, int, int], terms: str, also: str, chosen: tuple[str, str]) -> None:
    """Of scores that are rounded once more: each term as an operand of the array."""
    case = Positioned(*sizes, terms, also)
    check(case.model(), case.inputs(), *chosen, roundings=16)


@pytest.mark.parametrize("chosen", [("inf2", "all"), ("inf2", "none"), ("inf1", "matmult-fp16")])
def test_a_window_of_two_heads(chosen: tuple[str, str]) -> None:
    case = Positioned(2, 32, 7, 6)
    check(case.model(), case.inputs(), *chosen, roundings=16)


def test_terms_are_summed_by_the_array() -> None:
    """No engine adds anything of the size of all scores, and it takes less time."""
    model, device = Positioned(3, 64, 14, 14).model(), load_device("neuron/inf2")
    found = _compiled(model).program
    with without("add_in_products"):
        apart = _compiled(model).program
    assert not any("Add" in origin.op for origin in found.origins)
    assert time_program(found, device).total_ps < time_program(apart, device).total_ps


def test_a_term_that_is_added_twice_is_left_alone() -> None:
    model = Positioned(2, 32, 7, 7, terms="h").model()
    (summed,) = (node for node in model.graph.node if node.op_type == "Add")
    again = onnx.helper.make_node("Add", [summed.output[0], summed.input[1]], ["again"])
    (last,) = (node for node in model.graph.node if node.op_type == "Softmax")
    last.input[0] = "again"
    model.graph.node.insert(len(model.graph.node) - 1, again)
    with without("add_in_products"):
        apart = _compiled(model)
    assert _compiled(model).program == apart.program


@pytest.mark.parametrize("also", ["terms", "by_h"])
def test_what_others_read_is_left_alone(also: str) -> None:
    model = Positioned(2, 32, 7, 6, also=also).model()
    with without("add_in_products"):
        apart = _compiled(model)
    assert _compiled(model).program == apart.program
